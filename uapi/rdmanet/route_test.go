package rdmanet

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// Routes to numeric addresses are kept for a moment, no more than routeMost of
// them; failures are not.
func TestRoutesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table routeTable
		find := func(host string) route {
			r, err := table.find(t.Context(), "udp4", host)
			require.NoError(t, err)
			return r
		}
		here := netip.MustParseAddr("127.0.0.1")
		want := route{here, netip.MustParseAddr("127.0.0.9")}
		require.Equal(t, want, find("127.0.0.9"))
		table.known["127.0.0.9"] = route{here, here} // as if it were so
		require.Equal(t, route{here, here}, find("127.0.0.9"))
		table.since = table.since.Add(-routeFor - 1)
		require.Equal(t, want, find("127.0.0.9"))

		_, err := table.find(t.Context(), "udp6", "127.0.0.9")
		require.Error(t, err)
		require.Len(t, table.known, 1)
		for i := range 2 * routeMost {
			find(fmt.Sprintf("127.1.%d.%d", i/256, i%256))
			require.LessOrEqual(t, len(table.known), routeMost)
		}
	})
}
