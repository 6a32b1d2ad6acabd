package emu

import (
	"io"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/trace"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestCMUnderTrace: a kernel that is traced can be waited for, too.
func TestCMUnderTrace(t *testing.T) {
	bed := newCMBed(t)
	c := must.Get(rdmacm.Open(trace.New(bed.pa, io.Discard)))(t)
	defer c.Close()
	l := must.Get(bed.b.Listen(cmServer, 0, rdmacm.Options{}))(t)
	go acceptOne(l)
	id := must.Get(c.Resolve(t.Context(), netip.AddrPort{}, cmServer, rdmacm.Options{}))(t)
	must.Get(id.Connect(t.Context(), qpNumber(0), rdmacm.ConnParam{}))(t)
	require.NoError(t, id.Destroy())
}
