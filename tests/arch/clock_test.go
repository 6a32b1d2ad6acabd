package arch

import (
	"go/ast"
	"testing"

	"github.com/stretchr/testify/require"
)

// wallClock are the product's files that make wall time into a number or a
// number into wall time, each with what for. What elapses is measured elsewhere
// by time.Time's monotonic reading, so that a step of the clock, by NTP or by
// hand, ends no connection and fires no timer.
var wallClock = map[string]string{
	"kshim/host/event.go":                 "a deadline in the past",
	"kshim/preload/build.go":              "the order of files",
	"kshim/trace/spans.go":                "when a span began and ended",
	"rnic/link/capture/block.go":          "a packet's time in a capture",
	"rnic/link/udp/conduit.go":            "a deadline in the past",
	"tools/rdmashim/dump/dissect/pcap.go": "a packet's time in a capture",
	"tests/wiretest/frame.go":             "a packet's time in a capture",
	"uapi/exchange.go":                    "a deadline in the past",
	"uapi/rdmanet/close.go":               "a deadline in the past",
	"uapi/stats/client.go":                "a deadline in the past",
}

// TestWallClock: nothing keeps wall time that it compares later.
func TestWallClock(t *testing.T) {
	numbers := map[string]bool{"Unix": true, "UnixNano": true, "UnixMicro": true, "UnixMilli": true}
	found := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && numbers[f.Sel.Name] {
				found[s.path] = true
				require.NotEmpty(t, wallClock[s.path], "%s: %s; measure by time.Since, or say here why not", s.path, f.Sel.Name)
			}
			return true
		})
	}
	require.Len(t, found, len(wallClock), "a row of the table is out of date")
}
