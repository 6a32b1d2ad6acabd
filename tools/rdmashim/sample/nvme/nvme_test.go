package nvme

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/internal/nvme/wire"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, func() []*cobra.Command {
		sample := cli.NewRoot("sample", Command())
		return []*cobra.Command{sample}
	})
}

// memory is a disk for tests. It fails when it is used beyond its size.
type memory struct {
	mu      sync.RWMutex
	b       []byte // guarded by mu
	flushes atomic.Int32
}

func newMemory(n int) *memory { return &memory{b: make([]byte, n)} }

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if off < 0 || off+int64(len(p)) > int64(len(m.b)) {
		return 0, io.ErrUnexpectedEOF
	}
	return copy(p, m.b[off:]), nil
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if off < 0 || off+int64(len(p)) > int64(len(m.b)) {
		return 0, io.ErrShortWrite
	}
	return copy(m.b[off:], p), nil
}

func (m *memory) Sync() error { m.flushes.Add(1); return nil }
func (m *memory) Size() int64 { return int64(len(m.b)) }

// serve has a target serve disks until the test ends, and returns the device
// for its hosts and its address.
func serve(t *testing.T, options string, target *Target) (*uapi.Device, string) {
	t.Helper()
	d, l := uapitest.Listen(t, options)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	target.Log = t.Logf
	go func() { done <- target.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.Empty(t, target.controllers, "controllers without a host")
	})
	return d, l.Addr().String()
}

func connect(t *testing.T, d *uapi.Device, addr string, c HostConfig) *Host {
	t.Helper()
	h := must.Get(Connect(t.Context(), d, addr, c))(t)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

// TestReadWrite: two hosts write two namespaces in pieces of all sizes at the
// same time, over a network that loses and reorders, and read them in others.
func TestReadWrite(t *testing.T) {
	for name, options := range map[string]string{"clean": "", "faults": "loss=1%&reorder=2%&dup=0.5%&seed=1"} {
		t.Run(name, func(t *testing.T) {
			disks := []*memory{newMemory(1 << 20), newMemory(1<<20 + 512)}
			d, addr := serve(t, options, &Target{Disks: []Disk{disks[0], disks[1]}})
			var hosts sync.WaitGroup
			for i, disk := range disks {
				h := connect(t, d, addr, HostConfig{Queues: 2, Depth: 8, Name: "host"})
				nsid := uint32(i + 1)
				require.Len(t, h.Namespaces, 2)
				require.EqualValues(t, len(disk.b)>>9, h.Namespaces[nsid].Blocks)
				require.NotEqual(t, h.Namespaces[1].ID, h.Namespaces[2].ID)
				hosts.Go(func() { exercise(t, h, nsid, disk) })
			}
			hosts.Wait()
		})
	}
}

// exercise writes a namespace whole and reads it back, by more callers than
// commands may be outstanding.
func exercise(t *testing.T, h *Host, nsid uint32, disk *memory) {
	ns := h.Namespaces[nsid]
	load := ns.Load()
	load.Workers, load.Seed = 40, uint64(nsid)
	if _, err := load.Write(t.Context()); err != nil {
		t.Error(err)
	}
	if err := ns.Flush(t.Context()); err != nil || disk.flushes.Load() != 1 {
		t.Error("flush: ", err, disk.flushes.Load())
	}
	if _, err := load.Check(t.Context()); err != nil {
		t.Error(err)
	}
	want := make([]byte, len(disk.b))
	if load.Fill(want, 0); !bytes.Equal(want, disk.b) {
		t.Error("other bytes lie on the disk")
	}
}

// TestConnectRefused: a host that a target does not take has the reason as its
// error, and nothing is left of it.
func TestConnectRefused(t *testing.T) {
	d, addr := serve(t, "", &Target{Disks: []Disk{newMemory(4096)}})
	h, err := Connect(t.Context(), d, addr, HostConfig{Subsystem: "other"})
	require.Nil(t, h)
	var status *StatusError
	require.ErrorAs(t, err, &status)
	require.Equal(t, wire.InvalidParam|wire.DoNotRetry, status.Status)

	d, addr = serve(t, "", &Target{Disks: []Disk{newMemory(4096)}, Seats: peer.Seats{Most: 1, Share: 1}})
	connected := must.Get(dialRaw(t, d, addr, adminQueue.Append(nil)))(t)
	connected.enable()
	h, err = Connect(t.Context(), d, addr, HostConfig{})
	require.Nil(t, h)
	require.ErrorAs(t, err, new(*uapi.RejectError))
	require.ErrorContains(t, err, "no room")
}

// TestRefusals: what a host may ask for and does not get has a status, and the
// connection stays.
func TestRefusals(t *testing.T) {
	disk := newMemory(64 << 10)
	d, addr := serve(t, "", &Target{Disks: []Disk{disk}})
	h := connect(t, d, addr, HostConfig{})
	io := func(op wire.Opcode, nsid uint32, first uint64, blocks, n int) error {
		c := &wire.Command{Opcode: op, Namespace: nsid}
		c.SetBlocks(first, blocks)
		way := toTarget
		if op == wire.OpRead {
			way = fromTarget
		}
		_, err := h.Namespaces[1].queue().do(t.Context(), c, way, make([]byte, n))
		return err
	}
	admin := func(c wire.Command) error {
		_, err := h.admin(t.Context(), &c, make([]byte, 4096))
		return err
	}
	fabrics := func(f wire.FabricsType, words ...uint32) error {
		c := wire.Command{Opcode: wire.OpFabrics, Fabrics: f}
		copy(c.Words[:], words)
		return admin(c)
	}
	for name, c := range map[string]struct {
		err  error
		want wire.Status
	}{
		"read beyond the end":    {io(wire.OpRead, 1, 127, 2, 1024), wire.BeyondEnd},
		"write beyond the end":   {io(wire.OpWrite, 1, 128, 1, 512), wire.BeyondEnd},
		"first block wraps":      {io(wire.OpRead, 1, 1<<64-1, 2, 1024), wire.BeyondEnd},
		"bytes wrap":             {io(wire.OpWrite, 1, 1<<55, 1, 512), wire.BeyondEnd},
		"less data than blocks":  {io(wire.OpWrite, 1, 0, 2, 512), wire.InvalidLength},
		"more data than blocks":  {io(wire.OpRead, 1, 0, 1, 1024), wire.InvalidLength},
		"no data":                {io(wire.OpRead, 1, 0, 1, 0), wire.InvalidLength},
		"another namespace":      {io(wire.OpRead, 2, 0, 1, 512), wire.InvalidNS},
		"flush of none":          {io(wire.OpFlush, 0, 0, 1, 0), wire.InvalidNS},
		"opcode":                 {io(0x7e, 1, 0, 1, 0), wire.InvalidOpcode},
		"admin opcode":           {admin(wire.Command{Opcode: 0x55}), wire.InvalidOpcode},
		"identify what":          {admin(wire.Command{Opcode: wire.AdminIdentify, Words: [6]uint32{0x77}}), wire.InvalidField},
		"identify whom":          {admin(wire.Command{Opcode: wire.AdminIdentify, Namespace: 9}), wire.InvalidNS},
		"log":                    {admin(wire.Command{Opcode: 0x02, Words: [6]uint32{0x03ff0002}}), wire.InvalidOpcode},
		"feature":                {admin(wire.Command{Opcode: wire.AdminSetFeatures, Words: [6]uint32{0x55}}), wire.InvalidField},
		"property":               {fabrics(wire.FabricsGet, 0, 0x4000), wire.InvalidField},
		"property that is fixed": {fabrics(wire.FabricsSet, 0, uint32(wire.PropertyCAP)), wire.InvalidField},
		"fabrics type":           {fabrics(0x77), wire.InvalidOpcode},
		"connect twice":          {h.add2(t.Context()), wire.WrongOrder},
		"async event":            {admin(wire.Command{Opcode: 0x0c}), wire.InvalidOpcode},
	} {
		var status *StatusError
		require.ErrorAs(t, c.err, &status, name)
		require.Equal(t, c.want|wire.DoNotRetry, status.Status, name)
	}
	require.ErrorIs(t, h.Namespaces[1].ReadAt(t.Context(), make([]byte, 100), 0), syscall.EINVAL)
	require.NoError(t, h.Namespaces[1].ReadAt(t.Context(), make([]byte, 512), 127<<9))
	require.Equal(t, make([]byte, 64<<10), disk.b)
}

// add2 sends a connect command again.
func (h *Host) add2(ctx context.Context) error {
	data := wire.ConnectData{Controller: wire.AnyController, Subsystem: h.config.Subsystem, Host: h.config.Name}
	_, err := h.queues[0].do(ctx, &wire.Command{Opcode: wire.OpFabrics, Fabrics: wire.FabricsConnect, Words: [6]uint32{0, 31}}, toTarget, data.Append(nil))
	return err
}
