# Kills every process of a town as soon as standard input ends, which it does when the tool ends, however it ends. Then
# it removes the file that fills the disk. The town's token is the first line of standard input and that file the second,
# so that the token stands neither in the words nor in the environment of the janitor's own processes.
trap '' INT TERM HUP
read -r token
IFS= read -r filler
cat > /dev/null

processes() {
  {
    grep --files-with-matches --null-data --no-messages --extended-regexp --file=- /proc/[0-9]*/environ \
      <<< "^(CHAOS_TOWN|GT_TOWN|HOME)=.*$token"
    grep --files-with-matches --null-data --no-messages --file=- /proc/[0-9]*/cmdline <<< "^gt-$token-"
  } | cut --delimiter=/ --fields=3
}

quiet=0
round=0
while [ "$quiet" -lt 3 ] && [ "$round" -lt 600 ]; do
  round=$((round + 1))
  found=$(processes)
  quiet=$((quiet + 1))
  if [ -n "$found" ]; then
    quiet=0
    # shellcheck disable=SC2086
    kill -KILL $found 2> /dev/null
  fi
  sleep 0.1
done
rm -f "$filler"
rm -f "/tmp/tmux-$(id -u)/gt-$token-"*
