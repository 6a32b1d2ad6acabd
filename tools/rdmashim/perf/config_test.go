package perf

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPattern(t *testing.T) {
	seen := map[string]bool{}
	for _, client := range []bool{false, true} {
		for slot := range 4 {
			for phase := range 2 {
				b := make([]byte, 37)
				pattern(b, client, slot, phase)
				require.False(t, seen[string(b)])
				seen[string(b)] = true
			}
		}
	}
}

// Any wishes of a peer are refused or can be met.
func TestValidate(t *testing.T) {
	good := Config{Op: Write, Sizes: []int{64}, Iterations: 1, QPs: 1, Depth: 4, List: 1, Moderation: 1}
	require.NoError(t, good.Validate())
	for i, spoil := range []func(*Config){
		func(c *Config) { c.Op = "sing" },
		func(c *Config) { c.Sizes = nil },
		func(c *Config) { c.Sizes = make([]int, 65) },
		func(c *Config) { c.Sizes = []int{MaxSize + 1} },
		func(c *Config) { c.Op = Atomic },
		func(c *Config) { c.Iterations = 0 },
		func(c *Config) { c.Duration = -1 },
		func(c *Config) { c.QPs = MaxQPs + 1 },
		func(c *Config) { c.Depth = MaxDepth + 1 },
		func(c *Config) { c.List = 5 },
		func(c *Config) { c.List, c.Outstanding = 4, 3 },
		func(c *Config) { c.Moderation = 0 },
		func(c *Config) { c.Inline = 5000 },
		func(c *Config) { c.Latency, c.QPs = true, 2 },
		func(c *Config) { c.Spoil = true },
		func(c *Config) { c.Slow = time.Second },
		func(c *Config) { c.Op, c.Slow = Send, -1 },
		func(c *Config) { c.Op, c.Slow, c.Latency = Send, 1, true },
	} {
		c := good
		spoil(&c)
		require.ErrorIs(t, c.Validate(), syscall.EINVAL, "case %d", i)
	}
}

// The completion queue holds all that its queue pairs take: where fewer
// messages are outstanding together, the queue pairs' depth gives way.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		op                            Op
		qps, depth, outstanding, list int
		want, entries                 int
		fits                          bool
	}{
		{Write, 1, 128, 0, 1, 128, 128, true},
		{Send, 4, 16, 0, 1, 16, 4 * 48, true},
		{Write, 10000, 16, 16, 1, 3, 30000, true},
		{Write, 10000, 16, 64, 4, 0, 0, false}, // lists of 4 need a depth of 4
		{Send, 10000, 16, 16, 1, 2, 30000, true},
		{Write, 10000, 16, 0, 1, 0, 0, false},
	} {
		config := Config{Op: c.op, QPs: c.qps, Depth: c.depth, Outstanding: c.outstanding, List: c.list}
		got, err := config.fit(32767)
		if !c.fits {
			require.ErrorContains(t, err, "-q", "%+v", c)
			continue
		}
		require.NoError(t, err, "%+v", c)
		require.Equal(t, []int{c.want, c.entries}, []int{got.Depth, got.entries()}, "%+v", c)
	}
}
