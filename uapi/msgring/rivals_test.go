package msgring_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// The list of all of them is in uapi/rdmanet/rivals_test.go.

// TestRival02FullSendQueueWaits: a send queue without a slot is backpressure,
// not an error, when each chunk is a byte and only waiting goroutines poll
// completions.
func TestRival02FullSendQueueWaits(t *testing.T) {
	for _, ring := range []int{16 << 10, 256 << 10} {
		onSim(t, "", msgring.Config{Mode: msgring.Messages, Ring: ring}, func(t *testing.T, a, b *msgring.Conn) {
			go func() {
				for i := range 3000 {
					if _, err := a.Write([]byte{byte(i)}); err != nil {
						t.Error(err)
						return
					}
				}
			}()
			buf := make([]byte, 10)
			for i := range 3000 {
				n := must.Get(b.Read(buf))(t)
				require.Equal(t, []byte{byte(i)}, buf[:n])
			}
		})
	}
}

// TestRival05NoMissingReceive: both ends write much more than the rings hold,
// over links that lose, reorder, double and corrupt packets, and no message
// meets a missing receive, which connect holds for all tests.
func TestRival05NoMissingReceive(t *testing.T) {
	for seed := range uint64(4) {
		for _, faults := range []string{"", "loss=5%&reorder=10%&dup=1%&corrupt=0.1%"} {
			t.Run(fmt.Sprintf("seed %d %s", seed, faults), func(t *testing.T) {
				onSim(t, faults+fmt.Sprintf("&seed=%d", seed+1), msgring.Config{Ring: 16 << 10 << seed}, func(t *testing.T, a, b *msgring.Conn) {
					bothWays(t, a, b, seed, 300_000)
				})
			})
		}
	}
}

// TestRival06MixedCompletions: completions of chunks, of control messages and
// of sends wait in the queue together, one to more than a batch of them, and
// none is lost.
func TestRival06MixedCompletions(t *testing.T) {
	for n := range 41 {
		onSim(t, "", msgring.Config{}, func(t *testing.T, a, b *msgring.Conn) {
			var want []byte
			for i := range n {
				chunk := bytes.Repeat([]byte{byte(i)}, 1+i*997%5000)
				want = append(want, chunk...)
				must.Get(a.Write(chunk))(t)
				must.Get(b.Write([]byte{byte(i)}))(t) // whose completions come at b
			}
			must.Get(io.ReadFull(a, make([]byte, n)))(t) // a CREDIT may go
			require.NoError(t, a.CloseWrite())
			synctest.Wait() // all of it waits at b
			got := must.Get(io.ReadAll(b))(t)
			require.True(t, bytes.Equal(want, got))
		})
	}
}

// TestRival12Lengths: messages and writes of the lengths at which quanta,
// packets, longest chunks, 16 bits and the ring end arrive as they were
// written.
func TestRival12Lengths(t *testing.T) {
	const ring = 256 << 10
	around := []int{1, ring / 256, 1024*3 - 4, 4096*15 - 4, ring / 4, 65_535, 65_536}
	var lengths []int
	for _, n := range around {
		lengths = append(lengths, n-1, n, n+1)
	}
	lengths = append(lengths, slices.Repeat([]int{ring / 5}, 7)...) // past the ring's end
	for name, mode := range map[string]msgring.Mode{"bytes": msgring.Bytes, "messages": msgring.Messages} {
		t.Run(name, func(t *testing.T) {
			onSim(t, "", msgring.Config{Mode: mode, Ring: ring}, func(t *testing.T, a, b *msgring.Conn) {
				buf := make([]byte, ring)
				for i, n := range lengths {
					if n < 1 || mode == msgring.Messages && n > a.Info().Longest {
						continue
					}
					data := bytes.Repeat([]byte{byte(i), byte(i >> 1), 7}, n/3+1)[:n]
					wrote := make(chan error, 1)
					go func() {
						_, err := a.Write(data)
						wrote <- err
					}()
					must.Get(io.ReadFull(b, buf[:n]))(t)
					require.NoError(t, <-wrote)
					require.True(t, bytes.Equal(data, buf[:n]), "%d bytes", n)
				}
			})
		})
	}
}
