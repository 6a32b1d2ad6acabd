package dump

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/internal/nvme/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/nvme"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestNVMe names the capsules of a host that connects, writes, reads and asks
// for too much.
func TestNVMe(t *testing.T) {
	t.Parallel()
	capture, disk := filepath.Join(t.TempDir(), "nvme.pcapng"), filepath.Join(t.TempDir(), "disk")
	require.NoError(t, os.WriteFile(disk, make([]byte, 1<<20), 0o600))
	address := clitest.Host()
	d := must.Get(uapi.Open("soft:"+address+"?pcap="+capture, uapi.OpenConfig{}))(t)
	l := must.Get(d.Listen(net.JoinHostPort(address, "4420"), uapi.ListenConfig{}))(t)
	file := must.Get(nvme.OpenDisk(disk))(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- (&nvme.Target{Disks: []nvme.Disk{file}}).Serve(ctx, l) }()
	h := must.Get(nvme.Connect(ctx, d, address+":4420", nvme.HostConfig{}))(t)
	page := make([]byte, 4096)
	require.NoError(t, h.Namespaces[1].WriteAt(ctx, page, 8192))
	require.NoError(t, h.Namespaces[1].ReadAt(ctx, page, 8192))
	require.Error(t, h.Namespaces[1].ReadAt(ctx, page, 1<<20))
	require.NoError(t, h.Namespaces[1].Flush(ctx))
	require.NoError(t, h.Close())
	cancel()
	require.NoError(t, <-served)
	require.NoError(t, l.Close())
	require.NoError(t, d.Close())
	require.NoError(t, file.Close())

	o := clitest.RunTool(t, "dump", capture).Well(t)
	for _, want := range []string{
		" nvme queue 0 Connect id ", "data 1024 by key 0x", " Property Get id ", " CSTS length 64 ",
		" Identify id ", ": Success (result 0x1) length 16 ",
		` nvme queue 1 Write id \d+ namespace 1 block 16\+8 data 4096 in the capsule length 4\d+ `,
		` nvme queue 1 Read id \d+ namespace 1 block 16\+8 data 4096 by key 0x[0-9a-f]{8} length 64 `,
		` nvme queue 1 Read id \d+: Success length 16 `, ` nvme queue 1 Read id \d+: LBA Out of Range length 16 `,
		` nvme queue 1 Flush id \d+ namespace 1 length 64 `,
	} {
		if strings.Contains(want, `\`) {
			require.Regexp(t, want, o.Stdout)
		} else {
			require.Contains(t, o.Stdout, want)
		}
	}

	o = clitest.RunTool(t, "dump", "--json", capture).Well(t)
	var last *nvmeCapsule
	for dec := json.NewDecoder(strings.NewReader(o.Stdout)); dec.More(); {
		var l struct{ NVMe *nvmeCapsule }
		require.NoError(t, dec.Decode(&l))
		if l.NVMe != nil && l.NVMe.Status != "" && *l.NVMe.Code != 0 {
			last = l.NVMe
		}
	}
	require.NotNil(t, last)
	require.Equal(t, []any{uint16(1), "Read", wire.BeyondEnd | wire.DoNotRetry}, []any{last.Queue, last.Command, wire.Status(*last.Code)})
}

// TestNVMeCut: capsules of any bytes are shown or left out.
func TestNVMeCut(t *testing.T) {
	q := &nvmeQueue{commands: map[uint16]wire.Command{}}
	c := wire.Command{Opcode: wire.OpFabrics, Fabrics: wire.FabricsSet}
	b := c.Append(nil)
	for n := range b {
		require.Nil(t, q.command(b[:n]))
	}
	for v := range 256 {
		for i := range b {
			other := slices.Clone(b)
			other[i] = byte(v)
			require.Contains(t, string(q.command(other).appendText(nil)), " nvme queue 0 ")
			q.answer(other[:16]).appendText(nil)
		}
	}
}
