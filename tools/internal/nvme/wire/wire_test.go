package wire

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// field is a number of some bytes at an offset, little-endian, or text.
type field struct {
	at, size int
	value    uint64
}

// page is n bytes that are zero but for the fields.
func page(n int, fields ...field) []byte {
	b := make([]byte, n)
	for _, f := range fields {
		for i := range f.size {
			b[f.at+i] = byte(f.value >> (8 * i))
		}
	}
	return b
}

// appended is what an Append method appends, which leaves what was there.
func appended(t *testing.T, f func([]byte) []byte) []byte {
	t.Helper()
	before := bytes.Repeat([]byte{0xa5}, 3)
	b := f(before[:3:3])
	require.Equal(t, before, b[:3])
	return b[3:]
}

// cutShort parses all prefixes that are too short.
func cutShort[T any](t *testing.T, b []byte, parse func([]byte) (T, error)) {
	t.Helper()
	for n := range len(b) {
		_, err := parse(b[:n])
		require.Error(t, err, "%d bytes", n)
	}
}

// TestCommands: include/linux/nvme.h has struct nvme_rw_command, struct
// nvmf_connect_command and struct nvmf_property_set_command at these offsets.
func TestCommands(t *testing.T) {
	rw := Command{Opcode: OpRead, ID: 0x1234, Namespace: 0x01020304, Data: SGL{Kind: SGLInvalidate, Addr: 0x1122334455667788, Length: 0x20000, Key: 0xaabbccdd}}
	rw.SetBlocks(0x0102030405060708, 65536)
	in := Command{Opcode: OpWrite, Data: SGL{Kind: SGLInCapsule, Addr: 512, Length: 1024}}
	connect := Command{Opcode: OpFabrics, Fabrics: FabricsConnect, Words: [6]uint32{3 << 16, 127, 5000}}
	set := Command{Opcode: OpFabrics, Fabrics: FabricsSet, Words: [6]uint32{0, uint32(PropertyCC), 0x460001}}
	for name, c := range map[string]struct {
		command Command
		want    []byte
	}{
		"read": {rw, page(64, field{0, 1, 2}, field{1, 1, 0x40}, field{2, 2, 0x1234}, field{4, 4, 0x01020304},
			field{24, 8, 0x1122334455667788}, field{32, 3, 0x20000}, field{35, 4, 0xaabbccdd}, field{39, 1, 0x4f},
			field{40, 8, 0x0102030405060708}, field{48, 2, 0xffff})},
		"write in the capsule": {in, page(64, field{0, 1, 1}, field{1, 1, 0x40}, field{24, 8, 512}, field{32, 4, 1024}, field{39, 1, 1})},
		"connect":              {connect, page(64, field{0, 1, 0x7f}, field{1, 1, 0x40}, field{4, 1, 1}, field{42, 2, 3}, field{44, 2, 127}, field{48, 4, 5000})},
		"property set":         {set, page(64, field{0, 1, 0x7f}, field{1, 1, 0x40}, field{44, 4, 0x14}, field{48, 8, 0x460001})},
		"PRP":                  {Command{PRP: true}, page(64)},
	} {
		b := appended(t, c.command.Append)
		require.Equal(t, c.want, b, name)
		require.Equal(t, c.command, must.Get(ParseCommand(b))(t), name)
		cutShort(t, b, ParseCommand)
	}
	require.Equal(t, []uint64{0x0102030405060708, 65536}, []uint64{rw.Block(), rw.Blocks()})
	require.Equal(t, []any{uint16(3), uint16(127), uint32(5000)}, []any{connect.Queue(), connect.Depth(), connect.KeepAlive()})
	require.Equal(t, []any{PropertyCC, uint64(0x460001)}, []any{set.Property(), set.Value()})
	require.Equal(t, []string{"Read", "Get Log Page", "Connect", "0xee"},
		[]string{rw.Name(false), rw.Name(true), connect.Name(true), (&Command{Opcode: 0xee}).Name(false)})
	require.Equal(t, []string{"0x77", "0x345", "0x4d", "CSTS"},
		[]string{Property(0x77).String(), (0x345 | DoNotRetry).String(), Refusal(77).String(), PropertyCSTS.String()})
}

// TestCompletions: struct nvme_completion.
func TestCompletions(t *testing.T) {
	c := Completion{Result: 0x0102030405060708, Head: 9, Queue: 1, ID: 0x1234, Status: InvalidParam | DoNotRetry}
	b := appended(t, c.Append)
	require.Equal(t, page(16, field{0, 8, 0x0102030405060708}, field{8, 2, 9}, field{10, 2, 1}, field{12, 2, 0x1234}, field{14, 2, 0x4182 << 1}), b)
	require.Equal(t, c, must.Get(ParseCompletion(b))(t))
	cutShort(t, b, ParseCompletion)
	require.Equal(t, "Connect Invalid Parameters", c.Status.String())
}

// TestPrivate: struct nvme_rdma_cm_req, nvme_rdma_cm_rep, nvme_rdma_cm_rej.
func TestPrivate(t *testing.T) {
	r := ConnRequest{Queue: 2, HostRecv: 128, HostSend: 127}
	b := appended(t, r.Append)
	require.Equal(t, page(32, field{2, 2, 2}, field{4, 2, 128}, field{6, 2, 127}), b)
	require.Equal(t, r, must.Get(ParseConnRequest(b))(t))
	cutShort(t, b, ParseConnRequest)
	require.Equal(t, page(32, field{2, 2, 64}), appended(t, func(b []byte) []byte { return AppendConnReply(b, 64) }))
	b = appended(t, RefusedNoRoom.Append)
	require.Equal(t, page(4, field{2, 2, 6}), b)
	require.Equal(t, RefusedNoRoom, must.Get(ParseRefusal(b))(t))
	cutShort(t, b, ParseRefusal)
}

// TestPages: struct nvmf_connect_data, nvme_id_ctrl, nvme_id_ns.
func TestPages(t *testing.T) {
	d := ConnectData{Controller: AnyController, Subsystem: "nqn.s", Host: "nqn.h"}
	d.HostID[15] = 0x77
	want := page(1024, field{15, 1, 0x77}, field{16, 2, 0xffff})
	copy(want[256:], "nqn.s")
	copy(want[512:], "nqn.h")
	b := appended(t, d.Append)
	require.Equal(t, want, b)
	require.Equal(t, d, must.Get(ParseConnectData(b))(t))
	cutShort(t, b, ParseConnectData)

	c := Controller{Model: "m", Subsystem: "nqn.s", ID: 3, MaxTransfer: 5, MaxCommands: 64, Namespaces: 2, InCapsule: 8192, Keyed: true}
	want = page(4096, field{77, 1, 5}, field{78, 2, 3}, field{80, 4, 0x10201}, field{96, 4, 1 << 6}, field{320, 2, 10},
		field{512, 1, 0x66}, field{513, 1, 0x44}, field{514, 2, 64}, field{516, 4, 2}, field{525, 1, 1},
		field{536, 4, 1 | 1<<2 | 1<<20}, field{1792, 4, 516}, field{1796, 4, 1}, field{1803, 1, 1})
	copy(want[4:72], "1                   m                                       1       ")
	copy(want[768:], "nqn.s")
	b = appended(t, c.Append)
	require.Equal(t, want, b)
	require.Equal(t, c, must.Get(ParseController(b))(t))
	cutShort(t, b, ParseController)

	n := Namespace{Blocks: 1000, Shift: 9, ID: d.HostID}
	b = appended(t, n.Append)
	require.Equal(t, page(4096, field{0, 8, 1000}, field{8, 8, 1000}, field{16, 8, 1000}, field{119, 1, 0x77}, field{130, 1, 9}), b)
	require.Equal(t, n, must.Get(ParseNamespace(b))(t))
	cutShort(t, b, ParseNamespace)

	require.Equal(t, []uint32{1, 7}, ParseList(page(4096, field{0, 4, 1}, field{4, 4, 7})))
	require.Len(t, ParseList(bytes.Repeat([]byte{1}, 4098)), 1024)
}

// FuzzCapsule: whatever comes as a capsule or a completion is read and written
// again, and read as the same.
func FuzzCapsule(f *testing.F) {
	f.Add(page(64, field{0, 1, 2}, field{39, 1, 0x4f}))
	f.Add(page(1088, field{0, 1, 0x7f}, field{4, 1, 1}, field{39, 1, 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := ParseCommand(b); err == nil {
			again := must.Get(ParseCommand(c.Append(nil)))(t)
			require.Equal(t, c, again)
			c.Name(true)
			c.Name(false)
		}
		if c, err := ParseCompletion(b); err == nil {
			require.Equal(t, c, must.Get(ParseCompletion(c.Append(nil)))(t))
		}
		if d, err := ParseConnectData(b); err == nil && len(d.Subsystem) < 256 && len(d.Host) < 256 {
			_ = d.Append(nil)
		}
		if c, err := ParseController(b); err == nil {
			_ = c.Append(nil)
		}
		_, _ = ParseNamespace(b)
		ParseList(b)
	})
}
