package device

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// TestOwnerEnds: the port of an address is had as soon as an owner has ended
// that takes no other process in any more, and is not waited for when it stays.
func TestOwnerEnds(t *testing.T) {
	for _, taken := range []int{0, 1, 20, 1e9} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			o := Chooser[int]{Open: func(way Way) (int, error) {
				require.Equal(t, "soft:127.99.98.97", way.Label)
				if tries++; tries <= taken {
					return 0, errs.Explain(syscall.EADDRINUSE, "no port mapper")
				}
				return 7, nil
			}}
			c, err := o.softAt(softSpec(netip.MustParseAddr("127.99.98.97")))
			if taken < 1e9 {
				require.NoError(t, err)
				require.Equal(t, 7, c)
				require.Equal(t, taken+1, tries)
				return
			}
			require.True(t, errors.Is(err, syscall.EADDRINUSE), "%v", err)
		})
	}
}
