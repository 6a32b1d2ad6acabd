package rdmanettest_test

import (
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
	"github.com/rdmashim/rdmashim/uapi/rdmanet/rdmanettest"
)

// TestPipe: what is written at one end is read at the other over a link that
// loses packets, and the ends need not be closed.
func TestPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := rdmanettest.Pipe(t, "loss=5%&seed=7", rdmanet.Config{Ring: 16 << 10})
		require.Equal(t, x.LocalAddr(), y.RemoteAddr())
		go func() { _, _ = io.Copy(y, y) }()
		must.Get(fmt.Fprint(x, "hello, peer"))(t)
		echo := make([]byte, 11)
		must.Get(io.ReadFull(x, echo))(t)
		require.Equal(t, "hello, peer", string(echo))
		require.NoError(t, x.SetReadDeadline(time.Now().Add(time.Hour))) // of the bubble
		_, err := x.Read(echo)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Positive(t, must.Get(x.Device().Counters())(t)["fault_loss"])
	})
}

// TestPipeIsPatient: a connection comes about although faults hit all
// confirmations of some attempts, after which the listener gives them up.
func TestPipeIsPatient(t *testing.T) {
	late := 0
	for seed := range 60 {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			rdmanettest.Pipe(t, fmt.Sprintf("loss=25%%&seed=%d", seed), rdmanet.Config{})
			if time.Since(began) > 5*time.Second {
				late++
			}
		})
	}
	require.Positive(t, late, "no attempt was given up")
}
