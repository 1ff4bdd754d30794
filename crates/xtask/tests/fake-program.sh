#!/bin/sh
# Stands in for every program on the PATH of the tests in test_command.rs: the name under which it
# is called says which one it plays. It is linked, never written, while tests run: a program that
# is still open for writing in some forked child cannot be started.
name=${0##*/}
echo "$name $*" >>"$FAKE_LOG"

# Detaches a process that knows nothing of where it comes from, and perhaps stays itself.
leave() {
    PATH=/usr/bin:/bin
    setsid env -i sh -c "echo \$\$ >'$FAKE_LOG.pid'; exec sleep 600" >/dev/null 2>&1 </dev/null &
    until [ -s "$FAKE_LOG.pid" ]; do sleep 0.02; done
    [ "$FAKE_LEAVES" = something ] || exec sleep 600
}

case "$name $*" in
'id -u') echo "$FAKE_UID" ;;
'sudo -n '*)
    [ "$FAKE_SUDO" = free ] || exit 1
    shift
    "$@"
    ;;
'apt-get update') exit 100 ;;
'apt-get install '*' git')
    [ "$FAKE_APT" = works ] || exit 100
    PATH=/usr/bin:/bin ln -s "$0" "${0%/*}/git"
    ;;
'cargo nextest --version') [ "$FAKE_NEXTEST" = present ] ;;
'npm install '*)
    [ "$FAKE_NPM" = works ] || exit 1
    PATH=/usr/bin:/bin mkdir -p "$CARGO_TARGET_DIR/agents/node_modules/.bin"
    PATH=/usr/bin:/bin touch "$CARGO_TARGET_DIR/agents/node_modules/.bin/claude" "$CARGO_TARGET_DIR/agents/node_modules/.bin/codex"
    ;;
'python3 -m venv '*)
    PATH=/usr/bin:/bin mkdir -p "$3/bin"
    PATH=/usr/bin:/bin ln -s "$0" "$3/bin/python"
    ;;
'python -m pip install '*) [ "$FAKE_PIP" = works ] || exit 1 ;;
'cargo '*)
    [ -z "$GT_TEST_AGENTS" ] || echo "agents in $GT_TEST_AGENTS" >>"$FAKE_LOG"
    [ -z "$NEXTEST_PROFILE" ] || [ "$*" = 'nextest --version' ] || echo "profile $NEXTEST_PROFILE" >>"$FAKE_LOG"
    [ -z "$GT_TEST_OPENAI" ] || echo "OpenAI's client in $GT_TEST_OPENAI" >>"$FAKE_LOG"
    [ -z "$FAKE_LEAVES" ] || case "$*" in *--version) ;; *) leave ;; esac
    exit "$FAKE_STATUS"
    ;;
'chaos '*) exit 130 ;;
*) exit 70 ;;
esac
