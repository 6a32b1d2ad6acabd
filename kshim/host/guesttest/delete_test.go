//go:build guest && linux

package guesttest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestDeletedUnderUs: a link that is deleted goes when the last context on it
// is closed, and serves it until then.
func TestDeletedUnderUs(t *testing.T) {
	kernel(t)
	const name = "rxe1"
	m := must.Get(netlinkmgr.Open())(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must.Get(m.Ensure(ctx, netlinkmgr.EnsureOptions{Name: name, NetDev: "eth1"}))(t)

	p := &pair{bufA: make([]byte, 4096)}
	p.a, p.qa, p.ma = side(t, name, p.bufA)
	self := must.Get(p.a.LocalEndpoint(p.qa))(t)
	require.NoError(t, p.a.ConnectQP(p.qa, self))
	p.at = must.Get(p.a.QueryMR(p.ma))(t)

	deleted := make(chan error, 1)
	go func() { deleted <- m.DeleteLink(ctx, name) }()
	for range 50 {
		p.write(t, 4096)
		must.Get(p.a.QueryQP(p.qa))(t)
	}
	require.Empty(t, deleted)
	require.NoError(t, p.a.Close())
	require.NoError(t, <-deleted)
	_, err := uapi.Open(name, uapi.OpenConfig{})
	require.Error(t, err)
}
