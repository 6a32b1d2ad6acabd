//go:build guest && linux

package guesttest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestDeletedUnderUs: a link that is deleted goes when the last context on it
// is closed, and serves it until then.
func TestDeletedUnderUs(t *testing.T) {
	kernel(t)
	const name = "rxe1"
	m, err := netlinkmgr.Open()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = m.Ensure(ctx, netlinkmgr.EnsureOptions{Name: name, NetDev: "eth1"})
	require.NoError(t, err)

	p := &pair{bufA: make([]byte, 4096)}
	p.a, p.qa, p.ma = side(t, name, p.bufA)
	self, err := p.a.LocalEndpoint(p.qa)
	require.NoError(t, err)
	require.NoError(t, p.a.ConnectQP(p.qa, self))
	p.at, err = p.a.QueryMR(p.ma)
	require.NoError(t, err)

	deleted := make(chan error, 1)
	go func() { deleted <- m.DeleteLink(ctx, name) }()
	for range 50 {
		p.write(t, 4096)
		_, err := p.a.QueryQP(p.qa)
		require.NoError(t, err)
	}
	require.Empty(t, deleted)
	require.NoError(t, p.a.Close())
	require.NoError(t, <-deleted)
	_, err = uapi.Open(name, uapi.OpenConfig{})
	require.Error(t, err)
}
