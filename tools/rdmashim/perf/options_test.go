package perf

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// TestOptions: each letter, and what it asks for.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		args string
		want func(*Config) any
		is   any
	}{
		{"write bw", func(c *Config) any { return c.Moderation }, 1},
		{"write bw", func(c *Config) any { return c.Sizes }, []int{65536}},
		{"write lat", func(c *Config) any { return c.Sizes }, []int{2}},
		{"atomic bw", func(c *Config) any { return c.Sizes }, []int{8}},
		{"write bw", func(c *Config) any { return c.Iterations }, 5000},
		{"write lat", func(c *Config) any { return c.Iterations }, 1000},
		{"write bw -n 7", func(c *Config) any { return []int{c.Iterations, c.Warmup} }, []int{7, 7}},
		{"write bw -t 9", func(c *Config) any { return c.Depth }, 9},
		{"write bw -l 200", func(c *Config) any { return c.Depth }, 200},
		{"write bw -q 9", func(c *Config) any { return c.QPs }, 9},
		{"write bw -Q 9", func(c *Config) any { return c.Moderation }, 9},
		{"write bw -s 8", func(c *Config) any { return c.Moderation }, 100},
		{"write bw -s 8 -Q 9", func(c *Config) any { return c.Moderation }, 9},
		{"write bw -m 512", func(c *Config) any { return c.MTU }, 512},
		{"write bw -D 1.5", func(c *Config) any { return c.Duration.String() }, "1.5s"},
		{"write bw -b", func(c *Config) any { return c.Bidirectional }, true},
		{"write bw -e", func(c *Config) any { return c.Events }, true},
		{"write bw -a", func(c *Config) any { return len(c.Sizes) }, 23},
		{"write bw -s 64K", func(c *Config) any { return c.Sizes }, []int{65536}},
		{"write bw -s 1M", func(c *Config) any { return c.Sizes }, []int{1 << 20}},
		{"write bw -I 32", func(c *Config) any { return c.Inline }, 32},
		{"write bw -D 0.1 -t 200", func(c *Config) any { return c.Warmup }, 200},
		{"write bw --warmup 3", func(c *Config) any { return c.Warmup }, 3},
	} {
		words := strings.Fields(c.args)
		o := &options{}
		o.config.Op, o.config.Latency = Op(words[0]), words[1] == "lat"
		cmd := &cobra.Command{}
		o.add(cmd)
		require.NoError(t, cmd.ParseFlags(words[2:]), c.args)
		require.NoError(t, o.complete(cmd, nil), c.args)
		require.Equal(t, c.is, c.want(&o.config), c.args)
	}
}
