package emu

import (
	"context"
	"io"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/cm"
	"github.com/rdmashim/rdmashim/kshim/trace"
)

// TestCMUnderTrace: a kernel that is traced can be waited for, too.
func TestCMUnderTrace(t *testing.T) {
	bed := newCMBed(t)
	c, err := cm.Open(trace.New(bed.pa, io.Discard))
	require.NoError(t, err)
	defer c.Close()
	l, err := bed.b.Listen(cmServer, 0, cm.Options{})
	require.NoError(t, err)
	go func() {
		if r, err := l.Accept(context.Background()); err == nil {
			_ = r.Accept(context.Background(), &qpNote{}, cm.ConnParam{})
		}
	}()
	id, err := c.Resolve(t.Context(), netip.AddrPort{}, cmServer, cm.Options{})
	require.NoError(t, err)
	_, err = id.Connect(t.Context(), &qpNote{}, cm.ConnParam{})
	require.NoError(t, err)
	require.NoError(t, id.Destroy())
}
