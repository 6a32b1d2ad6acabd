package main

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"math"
	"os"
	"slices"
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
	curves              []*curve
}

const (
	// plotTurn bounds how long a point of a plot is measured, and plotRounds how
	// often; a point is the median.
	plotTurn   = 100 * time.Millisecond
	plotRounds = 3
)

// point is a value of a curve that is to be measured.
type point struct {
	of      *curve
	x       float64
	measure func() (float64, error)
	values  []float64
}

// draw measures over sizes, and over loss, and writes the picture.
func (s *suite) draw(ctx context.Context, sizes []int, losses []float64) error {
	p := plotter{s: s, ctx: ctx, turn: min(s.turn, plotTurn), sizes: sizes, losses: losses}
	charts := []chart{p.bandwidth(), p.latency(), p.loss()}
	rounds := min(s.rounds, plotRounds)
	bar := newSteps(s.stderr, "points", rounds*len(p.points))
	defer bar.Done()
	for s.round = range rounds {
		for _, x := range p.points {
			y, err := x.measure()
			bar.Add(1)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err == nil { // what cannot be measured here is left out
				x.values = append(x.values, y)
			}
		}
		slices.Reverse(p.points)
	}
	if rounds%2 == 1 {
		slices.Reverse(p.points)
	}
	for _, x := range p.points {
		if len(x.values) > 0 {
			x.of.x, x.of.y = append(x.of.x, x.x), append(x.of.y, median(x.values))
		}
	}
	return os.WriteFile(s.plot, svg(charts), 0o666)
}

// plotter collects what is to be measured.
type plotter struct {
	s      *suite
	ctx    context.Context
	turn   time.Duration
	sizes  []int
	losses []float64
	points []*point
}

// What is plotted over: messages' sizes in bytes, those of datagrams up to
// datagramMax, and percent of the packets.
var (
	plotSizes  = []int{2, 8, 32, 128, 512, 2 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20}
	plotLosses = []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 5}
)

const datagramMax = 8 << 10

func (p *plotter) add(of *curve, x float64, measure func() (float64, error)) {
	p.points = append(p.points, &point{of: of, x: x, measure: measure})
}

// own measures with two processes of this program.
func (p *plotter) own(words string, value func(perf.Result) float64) func() (float64, error) {
	return func() (float64, error) {
		r, err := p.s.perf(p.ctx, fmt.Sprintf("%s -D %g", words, p.turn.Seconds()))
		if err != nil {
			return 0, err
		}
		return value(r), nil
	}
}

func (p *plotter) bandwidth() chart {
	write, udp, tcp := &curve{name: "WRITE"}, &curve{name: "raw UDP, GSO/GRO, CRC-32"}, &curve{name: "Go TCP"}
	for _, n := range p.sizes {
		raw := func(way string, run func(context.Context, int, time.Duration, perf.Peer) (float64, error)) func() (float64, error) {
			return func() (float64, error) {
				v, err := run(p.ctx, n, p.turn, p.s.other(way, "--size", strconv.Itoa(n)))
				return v / megabyte, err
			}
		}
		depth := max(8, min(128, (8<<20)/n))
		p.add(write, float64(n), p.own(fmt.Sprintf("write bw -s %d -t %d", n, depth), megabytes))
		p.add(udp, float64(n), raw("udp", perf.RawUDP))
		p.add(tcp, float64(n), raw("tcp", perf.GoTCP))
	}
	return chart{"Bandwidth over size", "bytes of a message", "MB/s", bytesTick, []*curve{write, udp, tcp}}
}

func (p *plotter) latency() chart {
	poll, wait := &curve{name: "WRITE, polling"}, &curve{name: "WRITE, waiting"}
	spin, net := &curve{name: "raw UDP that spins"}, &curve{name: "raw UDP on the netpoller"}
	for _, n := range p.sizes {
		raw := func(spin bool) func() (float64, error) {
			return func() (float64, error) { return perf.UDPPingPong(p.ctx, n, p.turn, spin, p.s.pong(n, spin)) }
		}
		p.add(poll, float64(n), p.own(fmt.Sprintf("write lat -s %d", n), typical))
		p.add(wait, float64(n), p.own(fmt.Sprintf("write lat -e -s %d", n), typical))
		if n <= datagramMax {
			p.add(spin, float64(n), raw(true))
			p.add(net, float64(n), raw(false))
		}
	}
	return chart{"Half round trip over size", "bytes of a message", "µs", bytesTick, []*curve{poll, wait, spin, net}}
}

func (p *plotter) loss() chart {
	lossy, clean := &curve{name: "WRITE 1 MiB"}, &curve{name: "without loss"}
	for _, l := range p.losses {
		p.add(lossy, l, p.own(fmt.Sprintf("%s --loss %g%%", lossyWrite, l), megabytes))
	}
	once := memo(p.s, func(context.Context) (float64, error) { return p.own(lossyWrite, megabytes)() })
	for _, l := range []float64{p.losses[0], p.losses[len(p.losses)-1]} {
		p.add(clean, l, func() (float64, error) { return once(p.ctx) })
	}
	percent := func(x float64) string { return fmt.Sprintf("%g %%", x) }
	return chart{"Goodput over loss", "packets lost, in each direction", "MB/s", percent, []*curve{lossy, clean}}
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
	marginTop, marginBottom = 52, 50
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
	fmt.Fprintf(b, `<text x="%d" y="22" text-anchor="middle" font-size="14" font-weight="bold">%s</text>`+"\n", (left+right)/2, html.EscapeString(c.title))
	text((left+right)/2, chartHeight-12, "middle", c.xName)
	text(left-6, top-12, "end", c.yName)
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
	steps := []float64{1}
	if maxY/minY < 1001 {
		steps = []float64{1, 2, 5} // there is room for more
	}
	for y := minY; y <= maxY*1.0001; y *= 10 {
		for _, k := range steps {
			if y*k > maxY*1.0001 {
				break
			}
			_, py := place(minX, y*k)
			line(left, py, right, py, map[bool]string{true: "#cccccc", false: "#eeeeee"}[k == 1])
			text(left-6, py+4, "end", strconv.FormatFloat(y*k, 'f', max(0, int(math.Ceil(-math.Log10(y)-1e-9))), 64))
		}
	}
	ticks, legend := map[float64]bool{}, float64(left+10)
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
		// The legend lies above the curves: none of them crosses it.
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="10" height="10" fill="%s"/>`+"\n", legend, top-21, color)
		text(legend+15, top-12, "start", v.name)
		legend += 15 + 6.4*float64(len(v.name)) + 14
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
