package main

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

// curve is a line of a chart.
type curve struct {
	name string
	x, y []float64
}

// chart is one picture: curves over an axis that doubles, or grows tenfold.
type chart struct {
	title, xName, yName string
	tick                func(x float64) string
	curves              []curve
}

// plotTurn bounds how long a point of a plot is measured.
const plotTurn = 100 * time.Millisecond

// draw measures over sizes, and over loss, and writes the picture.
func (s *suite) draw(ctx context.Context) error {
	sizes := []int{2, 8, 32, 128, 512, 2 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20}
	losses := []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 5}
	turn := min(s.turn, plotTurn)
	bar := newProgress(s.stderr, "plot", int64(5*len(sizes)+len(losses)))
	defer bar.done()
	// add measures a point; what cannot be measured here is left out.
	add := func(c *curve, x float64, run func() (float64, error)) error {
		y, err := run()
		bar.add(1)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			c.x, c.y = append(c.x, x), append(c.y, y)
		}
		return nil
	}
	own := func(words string, pick func(perf.Result) float64) func() (float64, error) {
		return func() (float64, error) {
			r, err := s.perf(ctx, fmt.Sprintf("%s -D %g", words, turn.Seconds()))
			if err != nil {
				return 0, err
			}
			return pick(r), nil
		}
	}
	goodput := func(r perf.Result) float64 { return r.Goodput / gigabyte }
	latency := func(r perf.Result) float64 { return r.Typical }
	write, udp, tcp := curve{name: "WRITE"}, curve{name: "raw UDP"}, curve{name: "Go TCP"}
	poll, wait := curve{name: "WRITE, polling"}, curve{name: "WRITE, waiting"}
	for _, n := range sizes {
		x := float64(n)
		depth := max(8, min(128, (8<<20)/n))
		raw := func(way string, run func(context.Context, int, time.Duration, perf.Peer) (float64, error)) func() (float64, error) {
			return func() (float64, error) {
				v, err := run(ctx, n, turn, s.other(way, "--size", strconv.Itoa(n)))
				return v / gigabyte, err
			}
		}
		for _, p := range []struct {
			c   *curve
			run func() (float64, error)
		}{
			{&write, own(fmt.Sprintf("write bw -s %d -t %d", n, depth), goodput)},
			{&udp, raw("udp", perf.RawUDP)},
			{&tcp, raw("tcp", perf.GoTCP)},
			{&poll, own(fmt.Sprintf("write lat -s %d", n), latency)},
			{&wait, own(fmt.Sprintf("write lat -e -s %d", n), latency)},
		} {
			if err := add(p.c, x, p.run); err != nil {
				return err
			}
		}
	}
	lossy := curve{name: "WRITE 1 MiB"}
	for _, l := range losses {
		if err := add(&lossy, l, own(fmt.Sprintf("write bw -s 1048576 -t 8 --warmup 1 --seed 7 --loss %g%%", l), goodput)); err != nil {
			return err
		}
	}
	return os.WriteFile(s.plot, svg([]chart{
		{"Bandwidth over size", "bytes of a message", "GB/s", bytesTick, []curve{write, udp, tcp}},
		{"Half round trip over size", "bytes of a message", "µs", bytesTick, []curve{poll, wait}},
		{"Goodput over loss", "packets lost", "GB/s", func(x float64) string { return fmt.Sprintf("%g%%", x) }, []curve{lossy}},
	}), 0o666)
}

func bytesTick(x float64) string {
	switch {
	case x >= 1<<20:
		return fmt.Sprintf("%gM", x/(1<<20))
	case x >= 1<<10:
		return fmt.Sprintf("%gK", x/(1<<10))
	}
	return fmt.Sprintf("%g", x)
}

const (
	chartWidth, chartHeight = 640, 320
	marginLeft, marginRight = 70, 20
	marginTop, marginBottom = 40, 50
)

var chartColors = []string{"#1f5fb4", "#c4432b", "#2e8b57", "#8a5cb8"}

// svg draws charts one below the other.
func svg(charts []chart) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", chartWidth, chartHeight*len(charts))
	fmt.Fprintln(&b, `<rect width="100%" height="100%" fill="white"/>`)
	for i, c := range charts {
		fmt.Fprintf(&b, `<g transform="translate(0,%d)">`+"\n", i*chartHeight)
		c.draw(&b)
		fmt.Fprintln(&b, "</g>")
	}
	fmt.Fprintln(&b, "</svg>")
	return b.Bytes()
}

func (c *chart) draw(b *bytes.Buffer) {
	text := func(x, y float64, anchor, s string) {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(s))
	}
	line := func(x1, y1, x2, y2 float64, color string) {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, color)
	}
	const left, right, top, bottom = marginLeft, chartWidth - marginRight, marginTop, chartHeight - marginBottom
	text((left+right)/2, 20, "middle", c.title)
	text((left+right)/2, chartHeight-12, "middle", c.xName)
	text(12, top-12, "start", c.yName)
	minX, maxX, minY, maxY := c.bounds()
	if minX > maxX {
		text((left+right)/2, (top+bottom)/2, "middle", "nothing of this could be measured here")
		return
	}
	place := func(x, y float64) (float64, float64) {
		px := left + (right-left)*(math.Log(x)-math.Log(minX))/max(math.Log(maxX)-math.Log(minX), 1e-9)
		py := bottom - (bottom-top)*(math.Log(y)-math.Log(minY))/(math.Log(maxY)-math.Log(minY))
		return px, py
	}
	for y := minY; y <= maxY*1.0001; y *= 10 {
		_, py := place(minX, y)
		line(left, py, right, py, "#dddddd")
		text(left-6, py+4, "end", fmt.Sprintf("%g", y))
	}
	ticks := map[float64]bool{}
	for i, v := range c.curves {
		color := chartColors[i%len(chartColors)]
		fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, color)
		for k := range v.x {
			px, py := place(v.x[k], v.y[k])
			fmt.Fprintf(b, "%.1f,%.1f ", px, py)
		}
		fmt.Fprintln(b, `"/>`)
		for k := range v.x {
			px, py := place(v.x[k], v.y[k])
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"><title>%s, %s: %.4g %s</title></circle>`+"\n",
				px, py, color, html.EscapeString(v.name), html.EscapeString(c.tick(v.x[k])), v.y[k], html.EscapeString(c.yName))
			if !ticks[v.x[k]] {
				ticks[v.x[k]] = true
				line(px, bottom, px, bottom+4, "black")
				text(px, bottom+17, "middle", c.tick(v.x[k]))
			}
		}
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/>`+"\n", left+10, top+6+16*i, color)
		text(left+25, float64(top+15+16*i), "start", v.name)
	}
	line(left, bottom, right, bottom, "black")
	line(left, top, left, bottom, "black")
}

// bounds are the axes' ends; y's are powers of ten.
func (c *chart) bounds() (minX, maxX, minY, maxY float64) {
	minX, minY = math.Inf(1), math.Inf(1)
	maxX, maxY = math.Inf(-1), math.Inf(-1)
	for _, v := range c.curves {
		for k := range v.x {
			y := max(v.y[k], 1e-9)
			v.y[k] = y
			minX, maxX = min(minX, v.x[k]), max(maxX, v.x[k])
			minY, maxY = min(minY, y), max(maxY, y)
		}
	}
	minY = math.Pow(10, math.Floor(math.Log10(minY)))
	maxY = max(math.Pow(10, math.Ceil(math.Log10(maxY))), minY*10)
	return minX, maxX, minY, maxY
}
