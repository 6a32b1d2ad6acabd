package dump

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// sharked is a packet as tshark sees it: every field's name, and its values in
// the order in which they come.
type sharked map[string][]string

// tshark dissects a file, or skips where there is no tshark. Heuristics that
// take payloads for a protocol by their first bytes are off.
func tshark(t *testing.T, path string) []sharked {
	t.Helper()
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed; install it (package tshark) to compare: ", err)
	}
	known := tsharkProtocols()
	require.NotEmpty(t, known)
	args := []string{"-n", "-r", path, "-T", "json", "-J", "frame ip ipv6 udp infiniband"}
	for _, name := range []string{"rpcordma", "infiniband.eoib", "infiniband_sdp", "fcoib", "iser", "lnet", "nvme-rdma", "smb_direct", "smc"} {
		if strings.Contains(known, "\t"+name+"\n") {
			args = append(args, "--disable-protocol", name)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	out := must.Get(cmd.Output())(t)
	var list []sharked
	d := json.NewDecoder(strings.NewReader(string(out)))
	require.NoError(t, next(d))
	for d.More() {
		p := sharked{}
		require.NoError(t, p.read(d, ""))
		list = append(list, p)
	}
	return list
}

// tsharkProtocols is tshark's list of protocols; naming another one is an
// error.
var tsharkProtocols = sync.OnceValue(func() string {
	out, _ := exec.Command("tshark", "-G", "protocols").Output()
	return string(out)
})

// next passes over a token.
func next(d *json.Decoder) error { _, err := d.Token(); return err }

// read takes a JSON value in. tshark repeats keys in one object, so that no map
// holds it.
func (p sharked) read(d *json.Decoder, name string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	delim, nested := token.(json.Delim)
	if !nested {
		p[name] = append(p[name], fmt.Sprint(token))
		return nil
	}
	for d.More() {
		inner := name
		if delim == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			inner = key.(string)
		}
		if err := p.read(d, inner); err != nil {
			return err
		}
	}
	return next(d)
}

func (p sharked) has(name string) bool { return len(p[name]) > 0 }

// number reads a field as tshark writes it: decimal, or hexadecimal with 0x.
func (p sharked) number(t *testing.T, name string) uint64 {
	t.Helper()
	require.NotEmpty(t, p[name], "tshark shows no %s", name)
	n, err := strconv.ParseUint(p[name][0], 0, 64)
	require.NoError(t, err, name)
	return n
}

// bytes reads a field of bytes, 7b:7b, as a big-endian number.
func (p sharked) bytes(t *testing.T, name string) uint64 {
	t.Helper()
	require.NotEmpty(t, p[name], "tshark shows no %s", name)
	n, err := strconv.ParseUint(strings.ReplaceAll(p[name][0], ":", ""), 16, 64)
	require.NoError(t, err, name)
	return n
}

// line writes what tshark found in the terms of dump --json, with whole also
// what follows the BTH.
func (p sharked) line(t *testing.T, whole bool) map[string]any {
	t.Helper()
	n := func(name string) uint64 { return p.number(t, name) }
	when := strings.Split(p["frame.time_epoch"][0], ".")
	sec := must.Get(strconv.ParseInt(when[0], 10, 64))(t)
	nsec := must.Get(strconv.ParseInt(when[1], 10, 64))(t)
	m := map[string]any{
		"number":   n("frame.number"),
		"time":     time.Unix(sec, nsec).UTC().Format(time.RFC3339Nano),
		"src_port": n("udp.srcport"), "dst_port": n("udp.dstport"),
		"udp_length": n("udp.length") - 8,
		"bth": map[string]any{
			"opcode": n("infiniband.bth.opcode"), "solicited": n("infiniband.bth.se") == 1, "migreq": n("infiniband.bth.m") == 1,
			"pad": n("infiniband.bth.padcnt"), "tver": n("infiniband.bth.tver"), "pkey": n("infiniband.bth.p_key"),
			"dest_qpn": n("infiniband.bth.destqp"), "ackreq": n("infiniband.bth.a") == 1, "psn": n("infiniband.bth.psn"),
		},
	}
	if p.has("ip.src") {
		m["src"], m["dst"], m["hop_limit"], m["ip_id"] = p["ip.src"][0], p["ip.dst"][0], n("ip.ttl"), n("ip.id")
		m["tclass"] = n("ip.dsfield")
	} else {
		m["src"], m["dst"], m["hop_limit"] = p["ipv6.src"][0], p["ipv6.dst"][0], n("ipv6.hlim")
		m["tclass"] = n("ipv6.tclass")
	}
	if whole {
		p.extended(t, m)
	}
	return m
}

// extended adds the extended headers, and the length of what they leave.
func (p sharked) extended(t *testing.T, m map[string]any) {
	t.Helper()
	n := func(name string) uint64 { return p.number(t, name) }
	hex := func(name string) string { return fmt.Sprintf("0x%016x", n(name)) }
	length := n("udp.length") - 8 - 12 - 4 - n("infiniband.bth.padcnt")
	if p.has("infiniband.deth") {
		length -= 8
		m["deth"] = map[string]any{"qkey": n("infiniband.deth.q_key"), "src_qpn": n("infiniband.deth.srcqp")}
	}
	if p.has("infiniband.reth") {
		length -= 16
		m["reth"] = map[string]any{"va": hex("infiniband.reth.va"), "rkey": n("infiniband.reth.r_key"), "dma_len": n("infiniband.reth.dmalen")}
	}
	if p.has("infiniband.atomiceth") {
		length -= 28
		m["atomic_eth"] = map[string]any{"va": hex("infiniband.reth.va"), "rkey": n("infiniband.reth.r_key"),
			"swap_add": hex("infiniband.atomiceth.swapdt"), "compare": hex("infiniband.atomiceth.cmpdt")}
	}
	if p.has("infiniband.aeth") {
		length -= 4
		m["aeth"] = map[string]any{"syndrome": n("infiniband.aeth.syndrome"), "msn": n("infiniband.aeth.msn")}
	}
	if p.has("infiniband.atomicacketh") {
		length -= 8
		m["atomic_ack_eth"] = map[string]any{"original": hex("infiniband.atomicacketh.origremdt")}
	}
	if p.has("infiniband.immdt") {
		length -= 4
		m["immediate"] = p.bytes(t, "infiniband.immdt")
	}
	if p.has("infiniband.ieth") {
		length -= 4
		m["invalidate_rkey"] = p.bytes(t, "infiniband.ieth")
	}
	if p.has("infiniband.mad") {
		mad := map[string]any{"class": n("infiniband.mad.mgmtclass"), "method": n("infiniband.mad.method"), "status": n("infiniband.mad.status"),
			"tid": hex("infiniband.mad.transactionid"), "attribute": n("infiniband.mad.attributeid")}
		if cm := p.message(t); cm != nil {
			mad["cm"] = cm
		}
		m["mad"] = mad
	}
	m["payload_length"] = length
	// tshark shows the CRC's bytes as a number in their order.
	crc := binary.BigEndian.AppendUint32(nil, uint32(n("infiniband.invariant.crc")))
	m["icrc_value"] = uint64(binary.LittleEndian.Uint32(crc))
}

// ours is the output of dump --json, reduced to the fields that tshark knows,
// and without whole to those not behind the BTH.
func ours(t *testing.T, l Line, whole bool) map[string]any {
	t.Helper()
	b := must.Get(json.Marshal(l))(t)
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	var m map[string]any
	require.NoError(t, d.Decode(&m))
	m = numbers(t, m).(map[string]any)
	drop := func(from any, keys ...string) {
		if x, ok := from.(map[string]any); ok {
			for _, k := range keys {
				delete(x, k)
			}
		}
	}
	drop(m, "interface", "direction", "vlan", "icrc", "malformed")               // not of the packet, or our judgement
	drop(m["bth"], "name", "fecn", "becn", "selective", "private_mtu", "proven") // tshark 4.0 shows no congestion bits
	drop(m["aeth"], "text")
	drop(m["mad"], "name")
	if mad, ok := m["mad"].(map[string]any); ok {
		switch wire.CMAttribute(mad["attribute"].(uint64)) {
		case wire.AttrMRA, wire.AttrSIDRREQ, wire.AttrSIDRREP: // which tshark 4.0 does not know
			drop(mad, "cm")
		}
		if cm, ok := mad["cm"].(map[string]any); ok {
			drop(cm, "private_length", "reason_text")
			drop(cm["req"], "flow_label") // tshark 4.0 shows other bits
		}
	}
	if !whole {
		drop(m, "deth", "reth", "feth", "aeth", "atomic_eth", "atomic_ack_eth", "immediate", "invalidate_rkey", "mad",
			"payload_length", "icrc_value")
	}
	return m
}

// numbers makes every number a uint64.
func numbers(t *testing.T, v any) any {
	switch v := v.(type) {
	case json.Number:
		n := must.Get(strconv.ParseUint(v.String(), 10, 64))(t)
		return n
	case map[string]any:
		for k := range v {
			v[k] = numbers(t, v[k])
		}
	}
	return v
}

// compare holds dump --json against tshark, field by field, and returns how
// many packets were compared whole. Of the others, which were corrupted or are
// of an opcode that tshark does not know, everything up to the BTH is compared;
// likewise of NAKs with a bitmap, which count as whole.
func compare(t *testing.T, path string) (lines []Line, whole int) {
	t.Helper()
	theirs := tshark(t, path)
	lines = dumpFile(t, path)
	require.Len(t, lines, len(theirs))
	for i, l := range lines {
		s := theirs[i]
		require.True(t, s.has("infiniband.bth"), "%s packet %d is no RoCEv2 to tshark", path, l.Number)
		kept := l.AETH != nil && l.AETH.Kept != ""
		known := l.ICRC == "ok" && !kept && (s.has("infiniband.invariant.crc") || l.BTH.Opcode != uint8(wire.RCAtomicWrite))
		require.Equal(t, s.line(t, known), ours(t, l, known), "%s packet %d", path, l.Number)
		if known || kept && l.ICRC == "ok" {
			whole++
		}
	}
	return lines, whole
}

func TestDumpAgainstTshark(t *testing.T) {
	amount.Unraced(t)
	names := must.Get(filepath.Glob(filepath.Join(root, "tests", "testdata", "*.pcap")))(t)
	require.NotEmpty(t, names)
	opcodes, total, compared := map[string]bool{}, 0, 0
	for _, name := range names {
		lines, whole := compare(t, name)
		total, compared = total+len(lines), compared+whole
		for _, l := range lines {
			require.Equal(t, "ok", l.ICRC, "%s packet %d", name, l.Number)
			opcodes[l.BTH.Name] = true
		}
	}
	require.GreaterOrEqual(t, total, 723)
	// The ATOMIC WRITEs of the last file are what tshark 4.0 does not know.
	require.GreaterOrEqual(t, compared, total-3)
	require.GreaterOrEqual(t, len(opcodes), 38, "every opcode that was recorded: %v", opcodes)
}

// A device's own capture, faults and all: tshark sees what dump sees.
func TestDeviceAgainstTshark(t *testing.T) {
	amount.Unraced(t)
	path := filepath.Join(t.TempDir(), "device.pcapng")
	c := traffic(t, "pcap="+path, "seed=7&loss=5%&reorder=5%&dup=2%&corrupt=2%", 300_000)
	lines, whole := compare(t, path)
	bad := map[string]uint64{}
	in := map[string]uint64{}
	for _, l := range lines {
		require.Equal(t, lines[0].Interface, l.Interface)
		in[l.Direction]++
		if l.ICRC != "ok" {
			require.Equal(t, "bad", l.ICRC)
			bad[l.Direction]++
		}
	}
	require.Equal(t, len(lines), whole+int(bad["in"]+bad["out"]))
	// The counters were read before the device stopped; a late packet may
	// follow.
	require.GreaterOrEqual(t, in["in"], c["rcvd_pkts"]+c["drop_icrc"])
	require.LessOrEqual(t, in["in"], c["rcvd_pkts"]+c["drop_icrc"]+10)
	require.GreaterOrEqual(t, bad["in"], c["drop_icrc"])
	require.NotZero(t, c["fault_loss"]*c["fault_dup"]*c["fault_corrupt"]*bad["in"]*bad["out"])
	require.LessOrEqual(t, in["out"], c["sent_pkts"]-c["fault_loss"]+c["fault_dup"]+10)
	require.GreaterOrEqual(t, in["out"]+10, c["sent_pkts"]-c["fault_loss"]+c["fault_dup"])
}
