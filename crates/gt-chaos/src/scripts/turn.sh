# A scripted answer to one message, as plain text, or with the argument `claude` as that agent's stream of JSON. The
# line `answered` is written after the whole answer.
evidence=@EVIDENCE@
message=$(cat)

say() {
  printf '%s %s %s %s %s %s %s\n' "$EPOCHREALTIME" "$1" "$GT_SESSION" "$GT_RUN" "$$" "${GT_SLOT:--}" "$message" \
    >> "$evidence/turns.log"
}

exec 9>> "$evidence/sessions/$GT_SESSION"
flock --nonblock 9 || say double
say start
sleep "0.0$((RANDOM % 9 + 1))"
answer="answer to $message by $GT_RUN for ${GT_SLOT:--}"
give() {
  if [ "$1" = claude ]; then
    printf '{"type":"system","subtype":"init","session_id":"%s"}\n' "$GT_RUN" &&
      printf '{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]},"session_id":"%s"}\n' "$answer" "$GT_RUN" &&
      printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":"%s"}\n' "$answer" "$GT_RUN"
  else
    printf '%s\n' "$answer"
  fi
}

# A full disk takes no answer; an agent notices that, and fails.
if ! give "$1"; then
  say unwritten
  exit 1
fi
say answered
sleep "0.0$((RANDOM % 9 + 1))"
