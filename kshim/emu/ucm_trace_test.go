package emu

import (
	"context"
	"io"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/trace"
)

// TestCMUnderTrace: a kernel that is traced can be waited for, too.
func TestCMUnderTrace(t *testing.T) {
	bed := newCMBed(t)
	c, err := rdmacm.Open(trace.New(bed.pa, io.Discard))
	require.NoError(t, err)
	defer c.Close()
	l, err := bed.b.Listen(cmServer, 0, rdmacm.Options{})
	require.NoError(t, err)
	go func() {
		if r, err := l.Accept(context.Background()); err == nil {
			_ = r.Accept(context.Background(), qpNumber(0), rdmacm.ConnParam{})
		}
	}()
	id, err := c.Resolve(t.Context(), netip.AddrPort{}, cmServer, rdmacm.Options{})
	require.NoError(t, err)
	_, err = id.Connect(t.Context(), qpNumber(0), rdmacm.ConnParam{})
	require.NoError(t, err)
	require.NoError(t, id.Destroy())
}
