#!/bin/sh
# The whole program in a real X server: it paints and ends, refuses what it cannot read, and obeys keys. $1: the program, $2: a scenario, $3: a folder to write to.
set -u
gui=$1 scenario=$2 out=$3
for tool in Xvfb xdotool; do
    command -v $tool >/dev/null || { echo "SKIPPED: $tool is not installed"; exit 77; }
done
fail() { echo "FAILED: $1"; exit 1; }

mkdir -p "$out"
rm -f "$out"/display "$out"/*.png "$out"/log
Xvfb -displayfd 3 -screen 0 1400x900x24 -nolisten tcp 3>"$out/display" 2>/dev/null &
server=$!
trap 'kill $server 2>/dev/null' EXIT
tries=0
while [ ! -s "$out/display" ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || fail "Xvfb does not start"
    sleep 0.1
done
DISPLAY=:$(cat "$out/display")
XDG_CONFIG_HOME=$out/config XDG_RUNTIME_DIR=$out
export DISPLAY XDG_CONFIG_HOME XDG_RUNTIME_DIR
chmod 700 "$out"
unset QT_QPA_PLATFORM

timeout 60 "$gui" "$scenario" --screenshot "$out/whole.png" --size 1280x800 2>"$out/log" || fail "--screenshot: $(cat "$out/log")"
[ "$(wc -c <"$out/whole.png")" -gt 10000 ] || fail "the picture is empty"
timeout 60 "$gui" "$scenario" --screenshot "$out/part.png" --size 1280x800 --range 50ms:60ms 2>"$out/log" || fail "--range: $(cat "$out/log")"
cmp -s "$out/whole.png" "$out/part.png" && fail "--range shows what is shown without it"
timeout 60 "$gui" "$out/nothing.json" --screenshot "$out/none.png" 2>"$out/log"
code=$?
[ $code -eq 3 ] || fail "a file that is not there ends with $code instead of 3"
grep -q nothing.json "$out/log" || fail "the error does not name the file: $(cat "$out/log")"

# A window that a person uses: zoom in, to the right, out, help, and quit. It must end by itself, with 0.
timeout 60 "$gui" "$scenario" 2>"$out/log" &
program=$!
window=$(timeout 30 xdotool search --sync --onlyvisible --name Ringside 2>/dev/null | head -n 1)
[ -n "$window" ] || fail "no window appears: $(cat "$out/log")"
# There is no window manager to give it the focus.
xdotool windowfocus --sync "$window" mousemove 700 300
for key in w w d s F slash Escape ctrl+q; do xdotool key $key; done
wait $program
code=$?
[ $code -eq 0 ] || fail "the program ends with $code: $(cat "$out/log")"
echo "passed"
