# The command of a job. It says which slot it runs for, and holds a lock on its job while it lives.
evidence=@EVIDENCE@

say() {
  printf '%s %s %s %s %s %s %s\n' "$EPOCHREALTIME" "$1" "$GT_JOB" "$GT_RUN" "$$" "$GT_SLOT" "$GT_ATTEMPT" \
    >> "$evidence/slots.log"
}

exec 9>> "$evidence/jobs/$GT_JOB"
flock --nonblock 9 || say double
say start
sleep "0.0$((RANDOM % 9 + 1))"
echo "slot $GT_SLOT of $GT_JOB by $GT_RUN"
say end
