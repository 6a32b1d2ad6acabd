//go:build !race

package msgring_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// TestNoAllocations: a message there and back, with the waiting at both ends,
// allocates nothing, nor does a READ.
func TestNoAllocations(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir()) // no neighbour's `top` has questions
	a := must.Get(uapi.Open("soft", uapi.OpenConfig{}))(t)
	defer func() { require.NoError(t, a.Close()) }()
	b := must.Get(uapi.Open("soft", uapi.OpenConfig{}))(t)
	defer func() { require.NoError(t, b.Close()) }()
	t.Run("ping-pong", func(t *testing.T) {
		x, y := connect(t, a, b, msgring.Config{})
		go func() { _, _ = io.Copy(struct{ io.Writer }{y}, struct{ io.Reader }{y}) }()
		buf := make([]byte, 64)
		var failed error
		n := testing.AllocsPerRun(2000, func() {
			if _, err := x.Write(buf); err != nil {
				failed = err
			}
			if _, err := io.ReadFull(x, buf); err != nil {
				failed = err
			}
		})
		require.NoError(t, failed)
		require.Zero(t, n)
	})
	t.Run("READ", func(t *testing.T) {
		r := remote{t: t}
		r.a, r.b = connect(t, a, b, msgring.Config{Mode: msgring.Messages})
		ended := r.pump()
		_, addr, rkey := r.offered(100_000)
		mr, _, _, err := r.a.RegMR(make([]byte, 100_000), uapi.AccessLocalWrite)
		require.NoError(t, err)
		told := make(chan error, 1)
		done := func(err error) { told <- err }
		var failed error
		n := testing.AllocsPerRun(500, func() {
			if err := r.a.PostRead(mr, 0, 100_000, addr, rkey, done); err != nil {
				failed = err
				return
			}
			if err := <-told; err != nil {
				failed = err
			}
		})
		require.NoError(t, failed)
		require.Zero(t, n)
		closeBoth(t, r.a, r.b)
		ended.Wait()
	})
}
