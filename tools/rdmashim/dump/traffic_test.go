package dump

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// traffic writes n bytes from one soft device to another, does two atomics,
// reads the bytes back, and returns the counters of the first device. It has
// the options first, and both have the others. Both devices are closed then.
func traffic(t *testing.T, first, both string, n int) map[string]uint64 {
	t.Helper()
	a := must.Get(uapi.Open("soft?mtu=1024&"+both+"&"+first, uapi.OpenConfig{}))(t)
	defer a.Close()
	b := must.Get(uapi.Open("soft?mtu=1024&"+both, uapi.OpenConfig{}))(t)
	defer b.Close()
	const access = uapi.AccessLocalWrite | uapi.AccessRemoteWrite | uapi.AccessRemoteRead | uapi.AccessRemoteAtomic
	ours, theirs := make([]byte, n), make([]byte, n)
	for i := range ours {
		ours[i] = byte(i * i)
	}
	mr := must.Get(a.RegMR(ours, access))(t)
	_, there, err := b.RegRegion(theirs, uapi.MRConfig{Access: access})
	require.NoError(t, err)
	qa := must.Get(a.CreateQP(16, 16))(t)
	qb := must.Get(b.CreateQP(16, 16))(t)
	ea := must.Get(a.LocalEndpoint(qa))(t)
	eb := must.Get(b.LocalEndpoint(qb))(t)
	require.NoError(t, a.ConnectQP(qa, eb))
	require.NoError(t, b.ConnectQP(qb, ea))

	done := func(id uapi.WRID, err error) {
		t.Helper()
		require.NoError(t, err)
		must.Get(a.WaitWR(context.Background(), qa, id))(t)
	}
	done(a.Write(qa, uapi.SGE{MR: mr, Length: uint64(n)}, there))
	done(a.FetchAdd(qa, uapi.SGE{MR: mr, Length: 8}, there, 1))
	done(a.FetchAdd(qa, uapi.SGE{MR: mr, Length: 8}, there, 1))
	done(a.Read(qa, uapi.SGE{MR: mr, Length: uint64(n)}, there))
	require.Equal(t, theirs, ours)
	s := must.Get(a.Stats())(t)
	return s.Ports[0].Counters
}
