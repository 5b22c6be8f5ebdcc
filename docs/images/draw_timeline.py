#!/usr/bin/env python3
"""Draws a step from a trace of `ringside predict --trace step.json` as an SVG: draw_timeline.py step.json TITLE > step.svg"""
import html
import json
import sys

WIDTH, LEFT, RIGHT = 960, 92, 20
COLOURS = {"host": "#8b95a5", "forward": "#3b7dd8", "backward": "#6a5acd", "optimizer": "#2a9d6f", "other": "#a9b4c4",
           "communication": "#e08a1e", "exposed": "#c8402f"}


def merged(spans, gap):
    out = []
    for begin, end in sorted(spans):
        if out and begin - out[-1][1] <= gap:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out


def minus(spans, holes):
    out = []
    for begin, end in spans:
        for b, e in holes:
            if e <= begin or b >= end:
                continue
            if b > begin:
                out.append([begin, b])
            begin = max(begin, e)
        if begin < end:
            out.append([begin, end])
    return out


def main():
    trace = json.load(open(sys.argv[1]))
    events = trace["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    step = max(e["ts"] + e["dur"] for e in slices)
    scale = (WIDTH - LEFT - RIGHT) / step
    x = lambda t: LEFT + t * scale
    kinds = {}
    for e in slices:
        span = (e["ts"], e["ts"] + e["dur"])
        category = e.get("args", {}).get("category")
        if e["cat"] == "kernel" and category == "communication":
            kinds.setdefault("communication", []).append(span)
        elif e["cat"] in ("kernel", "gpu_memcpy"):
            word = e["name"].split(" ")[0]
            kinds.setdefault("optimizer" if category == "optimizer" else word if word in ("forward", "backward") else "other", []).append(span)
        elif e["cat"] in ("cpu_op", "cuda_runtime") and "ync" not in e["name"] and category != "wait":
            kinds.setdefault("host", []).append(span)
    busy = merged([s for k in ("forward", "backward", "optimizer", "other") for s in kinds.get(k, [])], 0)
    # Between two kernels the device breathes for a moment; such slivers are too thin to draw.
    kinds["exposed"] = [s for s in minus(merged(kinds.get("communication", []), 0), busy) if (s[1] - s[0]) * scale > 0.5]

    out = []
    def rect(a, b, y, h, fill, opacity=1):
        out.append(f'<rect x="{x(a):.1f}" y="{y}" width="{max((b - a) * scale, 0.6):.1f}" height="{h}" fill="{fill}" opacity="{opacity}"/>')
    def text(px, y, words, anchor="start", size=12, fill="#2b3440", weight="normal"):
        out.append(f'<text x="{px:.1f}" y="{y}" text-anchor="{anchor}" font-size="{size}" fill="{fill}" font-weight="{weight}">{html.escape(words)}</text>')

    text(LEFT, 24, sys.argv[2], size=15, weight="600")
    rows = [("host", 46, ["host"]), ("compute", 76, ["other", "forward", "backward", "optimizer"]), ("nccl", 106, ["communication"]), ("exposed", 136, ["exposed"])]
    for name, y, members in rows:
        text(LEFT - 10, y + 15, name, "end")
        out.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - RIGHT}" height="22" fill="#f1f3f6"/>')
        for kind in members:
            for begin, end in merged(kinds.get(kind, []), 0 if kind == "communication" else step * 4e-4):
                rect(begin, end, y, 22, COLOURS[kind])
                if kind == "communication" and (end - begin) * scale > 3:
                    out.append(f'<rect x="{x(end) - 0.7:.1f}" y="{y}" width="0.7" height="22" fill="#fff"/>')
    for kind in ("forward", "backward", "optimizer"):
        if kind in kinds:
            begin, end = min(s[0] for s in kinds[kind]), max(s[1] for s in kinds[kind])
            if (end - begin) * scale > 60:
                text((x(begin) + x(end)) / 2, 91, kind, "middle", 12, "#fff")
    exposed = sum(e - b for b, e in kinds["exposed"])
    if exposed > 0 and kinds["exposed"]:
        text(x(kinds["exposed"][-1][0]) - 8 if x(kinds["exposed"][-1][0]) > 400 else x(step), 151, f"{exposed / 1000:.1f} ms that nothing hides", "end", 12, COLOURS["exposed"])

    tick = next(t for t in (1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6) if step / t <= 9)
    axis = 168
    out.append(f'<line x1="{LEFT}" y1="{axis}" x2="{WIDTH - RIGHT}" y2="{axis}" stroke="#66707d"/>')
    for i in range(int(step / tick) + 1):
        out.append(f'<line x1="{x(i * tick):.1f}" y1="{axis}" x2="{x(i * tick):.1f}" y2="{axis + 5}" stroke="#66707d"/>')
        text(x(i * tick), axis + 18, f"{i * tick / 1000:g} ms" if i else "0", "middle", 11, "#66707d")
    total = axis + 32
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" width="{WIDTH}" height="{total}" font-family="system-ui, sans-serif">')
    print(f'<rect width="{WIDTH}" height="{total}" fill="#fff"/>')
    print("\n".join(out))
    print("</svg>")


main()
