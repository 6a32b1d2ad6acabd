package rdma

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzArguments reads any command line in iproute2's words: what it means, or
// wrong usage.
func FuzzArguments(f *testing.F) {
	f.Add("-j res show qp link rxe0/1 lqpn 1,4-7 state RTS")
	f.Add("link add rxe0 type rxe netdev eth0")
	f.Add("dev show dev rxe0 pid 99999999999999999999")
	f.Add("")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		for _, shorten := range []bool{false, true} {
			require.GreaterOrEqual(t, len(Args(args, shorten)), len(args))
		}
		known := filterWords("lqpn# pid# state type comm")
		_, list, err := parseFilters("resource show", args, known)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		for _, x := range list {
			_ = x.match("17")
			_ = x.match("RTS")
		}
	})
}
