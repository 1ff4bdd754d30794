#!/bin/sh
# Stands in for every program on the PATH of the tests in test_command.rs: the name under which it
# is called says which one it plays. It is linked, never written, while tests run: a program that
# is still open for writing in some forked child cannot be started.
name=${0##*/}
echo "$name $*" >>"$FAKE_LOG"

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
'cargo '*) exit "$FAKE_STATUS" ;;
*) exit 70 ;;
esac
