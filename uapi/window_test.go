package uapi_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// lender is a side with a region that no peer reaches, and a window.
type lender struct {
	*uapitest.End
	mem  uapi.MR
	data []byte
	mw   uapi.MW
}

func lend(t *testing.T, config uapi.QPConfig) (server *lender, client *uapitest.End) {
	a, b := uapitest.Pair(t, "")
	y, x := uapitest.ConnectWith(t, a, b, config, 4096)
	s := &lender{End: y, data: make([]byte, 1000), mw: must.Get(y.CreateMW(y.QP))(t)}
	s.mem = must.Get(y.RegMR(s.data, uapi.AccessLocalWrite|uapi.AccessMWBind))(t)
	t.Cleanup(func() {
		if err := y.DestroyQP(y.QP); err != nil {
			require.ErrorIs(t, err, syscall.EBADF)
		}
		if err := y.DeregMR(s.mem); err != nil {
			require.ErrorIs(t, err, syscall.EBADF)
		}
	})
	return s, x
}

// bind is a request that binds the window to 100 bytes of the region.
func (s *lender) bind(access uapi.Access) uapi.WR {
	return uapi.WR{Op: uapi.OpBindMW, Flags: uapi.Signaled, MW: s.mw, SGE: []uapi.SGE{piece(s.mem, 500, 100)}, Access: access}
}

func (s *lender) revoke(t *testing.T) {
	t.Helper()
	must.Get(s.Post(s.QP, []uapi.WR{{Op: uapi.OpLocalInv, Flags: uapi.Signaled, MW: s.mw}}))(t)
	require.Equal(t, uapi.WCOpLocalInv, s.Next(1)[0].Opcode)
}

var lending = uapi.QPConfig{SendDepth: 4, RecvDepth: 4, Inline: 16}

// TestWindowRefuses: a mistake that can be seen is an error of the post, which
// names the object, and the queue pair goes on.
func TestWindowRefuses(t *testing.T) {
	t.Parallel()
	s, x := lend(t, lending)
	closed := must.Get(s.RegMR(make([]byte, 8), uapi.AccessLocalWrite))(t)
	constant := must.Get(s.RegMR(make([]byte, 8), uapi.AccessMWBind))(t)
	pd := must.Get(s.CreatePD())(t)
	foreign := must.Get(s.RegMRWith(make([]byte, 8), uapi.MRConfig{Access: uapi.AccessMWBind, PD: pd}))(t)
	unreliable := must.Get(s.CreateQPWith(uapi.QPConfig{Type: uapi.TypeUC, SendDepth: 1}))(t)
	other, _ := uapitest.Connect(t, s.Device, x.Device)
	t.Cleanup(func() {
		require.NoError(t, s.DestroyQP(unreliable))
		for _, mr := range []uapi.MR{closed, constant, foreign} {
			require.NoError(t, s.DeregMR(mr))
		}
		require.NoError(t, s.DestroyPD(pd))
	})
	post := func(qp uapi.QP, wr uapi.WR) error {
		_, err := s.Post(qp, []uapi.WR{wr})
		return err
	}
	read := uapi.AccessRemoteRead
	for _, c := range []struct {
		says   string
		piece  uapi.SGE
		access uapi.Access
		errno  syscall.Errno
	}{
		{"no memory region", piece(0, 0, 8), read, syscall.EBADF},
		{"has 1000 bytes", piece(s.mem, 993, 8), read, syscall.EINVAL},
		{"has 1000 bytes", piece(s.mem, 1<<64-8, 16), read, syscall.EINVAL},
		{"no bytes", piece(s.mem, 0, 0), read, syscall.EINVAL},
		{"at least one", piece(s.mem, 0, 8), 0, syscall.EINVAL},
		{"a window permits", piece(s.mem, 0, 8), uapi.AccessLocalWrite | uapi.AccessRemoteWrite, syscall.EINVAL},
		{"without AccessMWBind", piece(closed, 0, 8), read, syscall.EINVAL},
		{"need AccessLocalWrite", piece(constant, 0, 8), uapi.AccessRemoteWrite, syscall.EINVAL},
		{"need AccessLocalWrite", piece(constant, 0, 8), uapi.AccessRemoteAtomic, syscall.EINVAL},
		{"in one protection domain", piece(foreign, 0, 8), read, syscall.EINVAL},
	} {
		region, err := s.NextRegion(s.mw, c.piece, c.access)
		require.Zero(t, region, c.says)
		for _, err := range []error{err, post(s.QP, uapi.WR{Op: uapi.OpBindMW, MW: s.mw, SGE: []uapi.SGE{c.piece}, Access: c.access})} {
			require.ErrorIs(t, err, c.errno, c.says)
			require.ErrorContains(t, err, c.says)
		}
	}
	refused := func(says string, err error) {
		t.Helper()
		require.ErrorIs(t, err, syscall.EINVAL)
		require.ErrorContains(t, err, says)
	}
	bind, revoke := s.bind(read), uapi.WR{Op: uapi.OpLocalInv, MW: s.mw}
	refused("is of qp", post(other.QP, bind))
	refused("is not bound", post(s.QP, revoke))
	two := bind
	two.SGE = append(two.SGE, two.SGE...)
	refused("2 pieces", post(s.QP, two))
	inline := bind
	inline.Flags |= uapi.Inline
	refused("cannot be inline", post(s.QP, inline))
	_, err := s.CreateMW(unreliable)
	refused("of TypeRC", err)
	refused("unreliable connection", post(unreliable, uapi.WR{Op: uapi.OpSendInv}))

	n, err := s.Post(s.QP, []uapi.WR{bind, bind}) // the first is on its way
	require.Equal(t, 1, n)
	refused("is bound", err)
	s.Next(1)
	s.revoke(t)
	refused("is not bound", post(s.QP, revoke))
}

// TestWindowAndFullQueue: requests that find no room leave no trace.
func TestWindowAndFullQueue(t *testing.T) {
	t.Parallel()
	s, _ := lend(t, lending)
	bind, revoke := s.bind(uapi.AccessRemoteRead), uapi.WR{Op: uapi.OpLocalInv, Flags: uapi.Signaled, MW: s.mw}
	region := func() uapi.Region { return must.Get(s.NextRegion(s.mw, bind.SGE[0], uapi.AccessRemoteRead))(t) }
	first := region()
	for i, wrs := range [][]uapi.WR{{bind, revoke, bind, revoke, bind, revoke}, {bind, revoke, bind, revoke, bind}, {bind, revoke, bind, revoke}, {bind}, {revoke, bind, revoke, bind, revoke, bind}} {
		n, err := s.Post(s.QP, wrs)
		require.Equal(t, min(len(wrs), 4), n, i)
		if len(wrs) > 4 {
			require.ErrorIs(t, err, syscall.ENOMEM)
		}
		s.Next(n)
	}
	require.Equal(t, first.RKey&^0xff|(first.RKey+9)&0xff, region().RKey, "nine were posted")
	s.revoke(t)
}
