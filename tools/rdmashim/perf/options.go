package perf

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// options are those of 'perf OP bw' and 'perf OP lat', with perftest's
// letters where perftest has them.
type options struct {
	cli.DeviceFlags
	config  Config
	host    string // HOST:PORT of the server; "" starts one
	size    int
	seconds float64
	all     bool
	warmup  int
	gid     int
	port    uint16
	// serverDevice is that of the server that is started, if it is another one.
	serverDevice string
	asJSON       bool
}

// Defaults are perftest's.
const (
	defaultBWSize, defaultLatSize = 65536, 2
	defaultBWCount                = 5000
	defaultLatCount               = 1000
	defaultDepth                  = 128
	defaultLatInline              = 220 // perftest's for latency
	defaultModeration             = 100
	largestLog                    = 23 // -a ends with 8 MiB
)

func (o *options) add(cmd *cobra.Command) {
	c := &o.config
	o.DeviceFlags.Add(cmd)
	f := cmd.Flags()
	size, count, depth, inline := defaultBWSize, defaultBWCount, defaultDepth, 0
	if c.Latency {
		size, count, depth = defaultLatSize, defaultLatCount, 1
		if c.Op == Write || c.Op == Send {
			depth = 16 // acknowledgements may be on the way
			inline = defaultLatInline
		}
	}
	if c.Op == Atomic {
		size = AtomicSize
	}
	cli.BytesVar(f, &o.size, "size", "s", size, "length of a message, like 4096, 64K or 1M")
	f.IntVarP(&c.Iterations, "iters", "n", count, "messages of each queue pair")
	f.Float64VarP(&o.seconds, "duration", "D", 0, "seconds to measure, instead of a number of messages; 7 s later at most the run ends, whatever the path does")
	f.BoolVarP(&o.all, "all", "a", false, "run sizes of 2, 4, 8 … bytes up to 8 MiB")
	f.IntVarP(&c.Depth, "tx-depth", "t", depth, "messages that a queue pair has outstanding")
	f.IntVarP(&c.QPs, "qp", "q", 1, "queue pairs")
	f.IntVarP(&c.List, "post_list", "l", 1, "messages that one post carries")
	f.IntVarP(&c.Moderation, "cq-mod", "Q", defaultModeration, "messages that one completion stands for; at most half the depth, and 1 above 8 KiB")
	cli.BytesVar(f, &c.Inline, "inline_size", "I", inline, "send messages up to so many bytes inline")
	f.IntVar(&c.Outstanding, "outstanding", 0, "messages that all queue pairs together have outstanding (default: qp × tx-depth)")
	cli.BytesVar(f, &c.Spread, "spread", "", 0, "bytes of memory that messages of different queue pairs are spread over (default: 64 MiB)")
	f.BoolVar(&c.Heap, "heap", false, "take the memory from Go's heap, of which nothing is lent to a device of this host")
	f.BoolVarP(&c.Bidirectional, "bidirectional", "b", false, "move in both directions at once")
	f.BoolVarP(&c.Events, "events", "e", false, "wait for completions instead of polling for them")
	f.IntVarP(&o.gid, "gid-index", "x", -1, "index in the device's table of addresses (default: chosen)")
	f.Uint16VarP(&o.port, "port", "p", defaultPort, "TCP port of the server at HOST")
	f.BoolP("CPU-freq", "F", false, "accepted as in perftest; the processor's frequency is never looked at")
	f.IntVar(&o.warmup, "warmup", -1, "messages of each queue pair before those that count; CPU time has them, too (default: up to 100, or the depth)")
	f.Lookup("gid-index").DefValue, f.Lookup("warmup").DefValue = "0", "0" // said in words
	if c.Op == Send && !c.Latency {
		f.DurationVar(&c.Slow, "slow", 0, "the receiver takes no more than one message in so much time, such as 1ms")
	}
	f.BoolVar(&c.Check, "check", false, "compare every byte of the last pattern that was sent with what arrived")
	f.BoolVar(&c.Spoil, "spoil", false, "invert a bit of the source before the last pattern leaves, so that --check has something to find")
	cli.JSONFlag(cmd, &o.asJSON)
}

// complete makes a Config of the options.
func (o *options) complete(cmd *cobra.Command, args []string) error {
	c := &o.config
	changed := cmd.Flags().Changed
	switch {
	case o.size < 1 || o.size > MaxSize:
		return cli.Usagef("-s %d: want 1 to %d bytes", o.size, MaxSize)
	case o.all && changed("size"):
		return cli.Usagef("-a runs all sizes: leave -s out")
	case o.all && c.Op == Atomic:
		return cli.Usagef("-a: an atomic has one size, %d bytes", AtomicSize)
	case changed("duration") && changed("iters"):
		return cli.Usagef("-n counts messages and -D time: leave one of them out")
	case changed("duration") && (o.seconds < 0.001 || o.seconds > 1e6):
		return cli.Usagef("-D %g: want a number of seconds from 0.001 to 1000000", o.seconds)
	case o.warmup < -1:
		return cli.Usagef("--warmup %d is less than none", o.warmup)
	case changed("gid-index") && o.gid < 0:
		return cli.Usagef("-x %d: want an index from 0", o.gid)
	}
	c.Duration = time.Duration(o.seconds * float64(time.Second))
	c.Sizes = []int{o.size}
	if o.all {
		c.Sizes = nil
		for n := 1; n <= largestLog; n++ {
			c.Sizes = append(c.Sizes, 1<<n)
		}
	}
	if !o.all && o.size > 8192 && !changed("cq-mod") {
		c.Moderation = 1
	}
	if c.List > c.Depth && !changed("tx-depth") {
		c.Depth = c.List
	}
	c.MTU, _ = strconv.Atoi(o.MTU.Text) // which is one of a few
	o.MTU.Text = ""
	if c.Warmup = o.warmup; o.warmup < 0 {
		c.Warmup = max(100, c.Depth)
		if c.Duration == 0 {
			c.Warmup = min(c.Warmup, c.Iterations)
		}
		if c.QPs > 16 {
			c.Warmup = min(c.Warmup, 2)
		}
	}
	if err := c.Validate(); err != nil {
		return cli.Usagef("%s", strings.TrimSuffix(err.Error(), ": invalid argument"))
	}
	if len(args) == 1 {
		if o.host = args[0]; o.host == "" {
			return cli.Usagef("the HOST is empty")
		}
		o.host = peer.HostPort(o.host, o.port)
	}
	return nil
}
