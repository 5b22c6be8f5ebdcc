#!/bin/sh
# The whole program in a real X server: it paints and ends, refuses what it cannot read, and does what a person asks of it by keys and
# mouse: open, zoom, select, edit a scenario, compare, export, end while a study runs, and be as it was left when it starts again.
# $1: the program, $2: a scenario, $3: a folder to write to.
set -u
gui=$1 scenario=$2 out=$3
for tool in Xvfb xdotool; do
    command -v $tool >/dev/null || { echo "SKIPPED: $tool is not installed"; exit 77; }
done
fail() { echo "FAILED: $1"; exit 1; }

mkdir -p "$out"
rm -rf "$out"/display "$out"/*.png "$out"/*.svg "$out"/*.json "$out"/*.csv "$out"/log "$out"/config
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
timeout 60 "$gui" "$scenario" --compare "$scenario" --screenshot "$out/compare.png" --size 1280x800 2>"$out/log" || fail "--compare: $(cat "$out/log")"
cmp -s "$out/whole.png" "$out/compare.png" && fail "--compare shows what is shown without it"
QT_SCALE_FACTOR=2 timeout 60 "$gui" "$scenario" --screenshot "$out/sharp.png" --size 1280x800 2>"$out/log" || fail "on a screen of high resolution: $(cat "$out/log")"
# A PNG says its width and height at bytes 16 to 23.
[ "$(od -An -tx1 -j16 -N8 "$out/sharp.png" | tr -d ' \n')" = 00000a0000000640 ] || fail "1280x800 on a screen of two pixels per unit is not 2560 x 1600"
timeout 60 "$gui" "$out/nothing.json" --screenshot "$out/none.png" 2>"$out/log"
code=$?
[ $code -eq 3 ] || fail "a file that is not there ends with $code instead of 3"
grep -q nothing.json "$out/log" || fail "the error does not name the file: $(cat "$out/log")"

# A window that a person uses. It must end by itself, with 0.
start() {
    timeout 300 "$gui" "$scenario" 2>"$out/log" &
    program=$!
    window=$(timeout 30 xdotool search --sync --onlyvisible --name Ringside 2>/dev/null | head -n 1)
    [ -n "$window" ] || fail "no window appears: $(cat "$out/log")"
    focus "$window"
    sleep 1
}
ends() {
    wait $program
    code=$?
    [ $code -eq 0 ] || fail "the program ends with $code: $(cat "$out/log")"
}
keys() { for key in "$@"; do xdotool key --delay 20 "$key"; sleep 0.1; done; }
focus() { xdotool windowfocus --sync "$1"; sleep 0.2; }  # there is no window manager to give it
dialog() {
    found=$(timeout 20 xdotool search --sync --onlyvisible --name "$1" 2>/dev/null | head -n 1)
    [ -n "$found" ] || fail "no dialog '$1' appears"
    sleep 0.3
    focus "$found"
}
# Waits for a dialog of that title, types a path and Enter, waits for the file and goes back to the window.
save_as() {
    dialog "$1"
    xdotool key ctrl+a
    xdotool type --delay 5 "$2"
    keys Return
    tries=0
    while [ ! -s "$2" ]; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || fail "$2 is not written"
        sleep 0.1
    done
    focus "$window"
}
start

# Zoom in and to the right; help; then the whole again and a range by dragging with the mouse.
keys ctrl+shift+s
save_as 'Save the view' "$out/before.svg"
xdotool mousemove 500 300
keys w w d ctrl+shift+s
save_as 'Save the view' "$out/zoomed.svg"
cmp -s "$out/before.svg" "$out/zoomed.svg" && fail "W and D move nothing"
keys F1
dialog 'Keys and commands'
keys Escape
focus "$window"
keys 0 ctrl+shift+s
save_as 'Save the view' "$out/whole.svg"
grep -q '0 ms' "$out/whole.svg" || fail "0 does not show the whole trace again"
xdotool mousemove 600 300 mousedown 1 mousemove 700 300 mousemove 800 300 mouseup 1
sleep 0.3
keys ctrl+shift+s
save_as 'Save the view' "$out/selected.svg"
cmp -s "$out/whole.svg" "$out/selected.svg" && fail "dragging selects nothing"

# Keep the result, change the micro-batch, see the change in what is saved, and compare.
keys Escape ctrl+k ctrl+s
save_as 'Save the scenario' "$out/first.json"
keys ctrl+e
xdotool type --delay 10 'micro batch'
keys Return ctrl+a
xdotool type '3'
keys Return
sleep 1
keys ctrl+s
save_as 'Save the scenario' "$out/second.json"
grep -q '"micro_batch": 3' "$out/second.json" || fail "the edited scenario is saved as $(cat "$out/second.json")"
grep -q '"micro_batch": 3' "$out/first.json" && fail "the scenario had that micro-batch before"
keys ctrl+shift+r
save_as 'Save the result' "$out/result.json"
grep -q '"step_time_s"' "$out/result.json" || fail "the result is no result"
keys ctrl+shift+k
sleep 1
xdotool getwindowname "$window" | grep -q Compare || fail "no comparison opens: $(xdotool getwindowname "$window")"
keys ctrl+alt+s
save_as 'Save the table' "$out/deltas.csv"
grep -q '^Name,slices_above' "$out/deltas.csv" || fail "the table of the comparison is saved as $(head -n 1 "$out/deltas.csv")"

# Another theme by the command palette, then the end while a study runs.
keys ctrl+shift+p
xdotool type --delay 10 'colour-blind dark'
keys Return
focus "$window"
keys ctrl+shift+g ctrl+q
ends

# It starts as it was left.
start
keys ctrl+q
ends
grep -q 'theme=colour-blind-dark' "$out"/config/ringside/ringside-gui.conf || fail "the theme is not kept"
grep -q "recentFiles=.*$(basename "$scenario")" "$out"/config/ringside/ringside-gui.conf || fail "the file is not remembered"
echo "passed"
