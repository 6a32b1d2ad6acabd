package uapi_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// The tests of this package's calls run on every kind of device that needs no
// privilege: sim, and soft, which sends through UDP sockets.

// eachDevice runs the test on a pair of devices of each kind.
func eachDevice(t *testing.T, test func(t *testing.T, a, b *uapi.Device)) {
	t.Run("sim", func(t *testing.T) {
		t.Parallel()
		a, b := uapitest.Pair(t, "")
		test(t, a, b)
	})
	t.Run("soft", func(t *testing.T) {
		t.Parallel()
		// Any UDP port: tests must not need port 4791.
		test(t, openDevice(t, "soft?port=0"), openDevice(t, "soft?port=0"))
	})
}

// openDevice opens a device until the end of the test, which fails if handles
// are left.
func openDevice(t *testing.T, device string) *uapi.Device {
	t.Helper()
	return openDeviceWith(t, device, uapi.OpenConfig{})
}

func openDeviceWith(t *testing.T, device string, config uapi.OpenConfig) *uapi.Device {
	t.Helper()
	d := must.Get(uapi.Open(device, config))(t)
	t.Cleanup(func() {
		require.Empty(t, d.OpenHandles())
		require.NoError(t, d.Close())
	})
	return d
}

var simNetworks atomic.Int64

// simNetwork names an in-memory network of the test's own.
func simNetwork() string { return fmt.Sprintf("sim?net=test-%d", simNetworks.Add(1)) }

// within bounds a test's waiting. Nothing is measured by it: it only ends a
// test that would hang.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// mustMR registers memory until the end of the test.
func mustMR(t *testing.T, d *uapi.Device, buf []byte, access uapi.Access) (uapi.MR, uapi.MRInfo) {
	t.Helper()
	mr := must.Get(d.RegMR(buf, access))(t)
	t.Cleanup(func() { d.DeregMR(mr) })
	return mr, must.Get(d.QueryMR(mr))(t)
}

// mustQP creates a queue pair until the end of the test.
func mustQP(t *testing.T, d *uapi.Device, config uapi.QPConfig) uapi.QP {
	t.Helper()
	qp := must.Get(d.CreateQPWith(config))(t)
	t.Cleanup(func() { d.DestroyQP(qp) })
	return qp
}

// connectPair connects two queue pairs.
func connectPair(t *testing.T, a *uapi.Device, qa uapi.QP, b *uapi.Device, qb uapi.QP) {
	t.Helper()
	ea := must.Get(a.LocalEndpoint(qa))(t)
	eb := must.Get(b.LocalEndpoint(qb))(t)
	require.NoError(t, a.ConnectQP(qa, eb))
	if a != b || qa != qb {
		require.NoError(t, b.ConnectQP(qb, ea))
	}
}

// next waits for one completion.
func next(t *testing.T, d *uapi.Device, qp uapi.QP) uapi.WC {
	t.Helper()
	var wc [1]uapi.WC
	n := must.Get(d.WaitCQ(within(t), qp, wc[:]))(t)
	require.Equal(t, 1, n)
	return wc[0]
}
