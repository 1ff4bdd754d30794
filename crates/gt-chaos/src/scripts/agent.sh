# A scripted worker. It writes what it does to agents.log, one O_APPEND line each, and holds a lock on its bead for as
# long as it or a child of it lives. Beads whose number ends in 3, 5, 7, 8 or 9 bring trouble of their own.
evidence=@EVIDENCE@

say() {
  local what=$1
  shift
  printf '%s %s %s %s %s %s\n' "$EPOCHREALTIME" "$what" "$GT_BEAD" "$GT_RUN" "$$" "$*" >> "$evidence/agents.log"
}

nap() {
  sleep "0.$((RANDOM % $1 + 1))"
}

# Commits all changes. A git that was killed leaves locks behind in this worktree, which are this agent's to remove.
commit() {
  local try
  for try in {1..60}; do
    git add --all && git commit --quiet --message="$1" && return 0
    [ -z "$(git status --porcelain)" ] && [ "$(git log -1 --format=%s)" = "$1" ] && return 0
    rm -f "$(git rev-parse --absolute-git-dir)"/*.lock
    sleep 0.3
  done
  say stuck commit
  exit 1
}

# Merges the work that came back, without what the gate refuses. A git that was killed has merged nothing.
take_over() {
  local theirs=$1 try
  for try in {1..60}; do
    git merge --quiet --no-edit --strategy-option=theirs "$theirs" && break
    if git rev-parse --quiet --verify MERGE_HEAD > /dev/null; then
      git diff --name-only --diff-filter=U | while read -r path; do
        git checkout --quiet --theirs -- "$path" || git rm --quiet --force -- "$path"
      done
      break
    fi
    rm -f "$(git rev-parse --absolute-git-dir)"/*.lock
    git reset --quiet --hard
    git clean --quiet --force -d
    sleep 0.3
  done
  git rm --quiet --force --ignore-unmatch 'FORBIDDEN-*'
}

# The next attempt tries again, with a fresh worktree.
must_have() {
  git merge-base --is-ancestor "$1" HEAD && return 0
  say stuck "without $1"
  exit 1
}

hand_over() {
  local try code answer
  say intent "$(git rev-parse HEAD)"
  for try in {1..40}; do
    answer=$(gt done "$@" 2>&1 9>&-)
    code=$?
    if [ "$code" = 0 ]; then
      say done "$(git rev-parse HEAD)"
      return 0
    fi
    say refused "$code ${answer%%$'\n'*}"
    sleep 0.5
  done
  exit 1
}

exec 9>> "$evidence/beads/$GT_BEAD"
flock --nonblock 9 || say double
echo "$GT_RUN" >&9
say start "$GT_RIG"
trap 'say end' EXIT
nap 9

kind=none
case $GT_BEAD in *-work*) kind=${GT_BEAD: -1} ;; esac
if [ "$kind" = 9 ]; then
  hand_over --no-changes
  exit 0
fi
before=$(grep --only-matching --max-count=1 'git merge [^`]*' .gasworks/ASSIGNMENT.md)
if [ -n "$before" ]; then
  take_over "${before#git merge }"
fi
mkdir -p "work/${GT_BEAD: -2}"
echo "$GT_RUN" > "work/${GT_BEAD: -2}/$GT_BEAD.$GT_RUN"
case $kind in
  3) echo "$GT_BEAD" > "FORBIDDEN-$GT_BEAD" ;;
  5) mkdir "$evidence/first/$GT_BEAD" 2> /dev/null && { nap 3; exit 3; } ;;
  7) echo "$GT_BEAD $GT_RUN" > shared.txt ;;
esac
commit "$GT_BEAD by $GT_RUN"
if [ -n "$before" ]; then
  must_have "${before#git merge }"
fi
nap 9
hand_over
if [ "$kind" = 8 ]; then
  nap 9
fi
