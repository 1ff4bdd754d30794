# Makes the town of town-0.1.0.sql with the gt of DIR/bin, in DIR: a daemon, two agents at work, a queue, a session with a
# running and a waiting turn, two jobs, and a merge that is held. Leaves all of it running.
#
# The fixture is a dump of its store, with the home as [HOME] and the machine's name as [HOST], and `git fast-export --all` of
# its rigs. With a gt that is then replaced, it also shows an upgrade under a live daemon and keeper.
set -eu
dir=$1
export HOME=$dir GT_ACTOR=ada TZ=UTC
export PATH=$dir/bin:$PATH
cd "$HOME"
git config --global user.name ada; git config --global user.email ada@example.org
git init -q --initial-branch=main shop; git -C shop commit -q --allow-empty -m start
git init -q --initial-branch=main site; git -C site commit -q --allow-empty -m start
gt init town; cd town
gt rig add shop ../shop --prefix sh
gt rig add site ../site --prefix si
cat > ../agent.sh <<'A'
echo "start $GT_BEAD $GT_RUN" >> "$HOME/trace"
while [ -d "$HOME" ] && [ ! -e "$HOME/gate-$GT_BEAD" ] && [ ! -e "$HOME/gate" ]; do sleep 0.05; done
[ "$GT_BEAD" != si-dirty ] || echo ours > notes.txt
echo "$GT_BEAD" > "$GT_BEAD.txt"; git add .; git commit -q -m "$GT_BEAD"
gt done
A
cat > ../turn.sh <<'A'
read -r text; echo "turn $GT_RUN $text" >> "$HOME/trace"
while [ -d "$HOME" ] && [ ! -e "$HOME/gate" ]; do sleep 0.05; done
echo "re: $text"
A
gt config set runtime process; gt config set server.bind 127.0.0.1:0
gt config set agents.scripted.command "[\"bash\", \"$HOME/agent.sh\"]"
gt config set agents.scripted.prompt none
gt config set agents.scripted.headless "[\"bash\", \"$HOME/turn.sh\"]"
gt config set default_agent scripted
gt config set scheduler.max_polecats 2
gt config set sessions.debounce_ms 0
printf '%s\n' '{"id":"sh-1","title":"One"}' '{"id":"sh-2","title":"Two"}' '{"id":"sh-3","title":"Queued"}' '{"id":"sh-4","title":"Blocked","dependencies":[{"issue_id":"sh-4","depends_on_id":"sh-3","type":"blocks"}]}' '{"id":"si-dirty","title":"Held"}' | gt bead import -
# a merge that is held: the person has uncommitted changes in the checkout
echo mine > ../site/notes.txt; git -C ../site add notes.txt
gt daemon start
touch ../gate-si-dirty
gt sling si-dirty
until gt refinery status --json | grep -q held; do sleep 0.1; done
gt sling sh-1 sh-2 sh-3 sh-4
until [ "$(grep -c '^start sh-[12]' ../trace)" = 2 ]; do sleep 0.1; done
gt send dm:anna first
until grep -q "^turn .*first" ../trace; do sleep 0.1; done
gt send dm:anna second
gt cron add tidy --cron '0 8 1 1 *' --run 'echo tidy >> "$HOME/trace"'
gt cron add later --at '2999-01-01 09:00' --message 'Happy new year'
