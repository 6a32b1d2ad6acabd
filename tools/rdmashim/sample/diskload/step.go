package diskload

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Step has the results of the commands of one kind.
type Step struct {
	Name     string
	Commands int64
	Bytes    int64
	Errors   int64
	Took     time.Duration
	Latency  *hdrhistogram.Histogram // ns
}

// IOPS is commands a second, and MBps megabytes.
func (s *Step) IOPS() float64 { return float64(s.Commands) / s.Took.Seconds() }
func (s *Step) MBps() float64 { return float64(s.Bytes) / 1e6 / s.Took.Seconds() }

// String is a line of text.
func (s *Step) String() string {
	us := func(q float64) float64 { return float64(s.Latency.ValueAtQuantile(q)) / 1e3 }
	return fmt.Sprintf("%-6s %.0f IOPS, %.1f MB/s, latency 50 %% %.0f µs, 99 %% %.0f µs, longest %.0f µs; %d commands, %d errors",
		s.Name, s.IOPS(), s.MBps(), us(50), us(99), float64(s.Latency.Max())/1e3, s.Commands, s.Errors)
}
