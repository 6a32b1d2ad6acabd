//go:build guest && linux

package guesttest

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/host"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// device is the kernel's device that every test uses.
const device = "rxe0"

// patience bounds every wait: an emulated processor is slow.
const patience = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(asUser) != "" {
		os.Exit(user())
	}
	leak.Main(m)
}

// kernel is the real one.
func kernel(t testing.TB) kshim.Kernel {
	t.Helper()
	if _, err := os.Stat("/sys/class/infiniband/" + device); err != nil {
		t.Skipf("no device %s; go test ./tests/guest runs this in a guest", device)
	}
	k := must.Get(host.New(host.Options{}))(t)
	return k
}

// attribute reads an attribute's text.
func attribute(t testing.TB, k kshim.Kernel, name string) string {
	t.Helper()
	f := must.Get(k.Open(name))(t)
	defer f.Close()
	buf := make([]byte, 4096)
	n, err := f.Read(context.Background(), buf)
	require.NoError(t, err, name)
	return strings.TrimSpace(string(buf[:n]))
}

// pair is two contexts on the kernel's device, with a queue pair on each,
// connected, and a region on each that permits everything.
type pair struct {
	a, b       *uapi.Device
	qa, qb     uapi.QP
	ma, mb     uapi.MR
	bufA, bufB []byte
	at         uapi.MRInfo // of mb
}

const everything = uapi.AccessLocalWrite | uapi.AccessRemoteWrite | uapi.AccessRemoteRead | uapi.AccessRemoteAtomic

func connect(t testing.TB, name string, size int) *pair {
	t.Helper()
	kernel(t)
	p := &pair{bufA: make([]byte, size), bufB: make([]byte, size)}
	p.a, p.qa, p.ma = side(t, name, p.bufA)
	p.b, p.qb, p.mb = side(t, name, p.bufB)
	ea := must.Get(p.a.LocalEndpoint(p.qa))(t)
	eb := must.Get(p.b.LocalEndpoint(p.qb))(t)
	require.NoError(t, p.a.ConnectQP(p.qa, eb))
	require.NoError(t, p.b.ConnectQP(p.qb, ea))
	p.at = must.Get(p.b.QueryMR(p.mb))(t)
	return p
}

func side(t testing.TB, name string, buf []byte) (*uapi.Device, uapi.QP, uapi.MR) {
	t.Helper()
	d := must.Get(uapi.Open(name, uapi.OpenConfig{}))(t)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	mr := must.Get(d.RegMR(buf, everything))(t)
	qp := must.Get(d.CreateQP(16, 16))(t)
	return d, qp, mr
}

// wait takes one completion, which must be a success.
func wait(t testing.TB, d *uapi.Device, qp uapi.QP) uapi.WC {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var wc [1]uapi.WC
	must.Get(d.WaitCQ(ctx, qp, wc[:]))(t)
	require.NoError(t, wc[0].Err())
	return wc[0]
}

// write writes n bytes from a to b and waits for it.
func (p *pair) write(t testing.TB, n int) {
	t.Helper()
	must.Get(p.a.PostWrite(p.qa, p.ma, 0, p.at.Addr, p.at.RKey, uint64(n)))(t)
	wait(t, p.a, p.qa)
}
