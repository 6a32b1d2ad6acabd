package dump

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// data reads a field of bytes as hexadecimal, the first n, without the zeros at
// its end when n is -1.
func (p sharked) data(t *testing.T, name string, n int) string {
	t.Helper()
	require.NotEmpty(t, p[name], "tshark shows no %s", name)
	text := strings.ReplaceAll(p[name][0], ":", "")
	if n >= 0 {
		return text[:2*n]
	}
	for strings.HasSuffix(text, "00") {
		text = text[:len(text)-2]
	}
	return text
}

// message writes a message of the connection manager in the terms of dump
// --json, nil of those that tshark does not know.
func (p sharked) message(t *testing.T) map[string]any {
	t.Helper()
	n := func(name string) uint64 { return p.number(t, "infiniband.cm."+name) }
	hex := func(name string) string { return fmt.Sprintf("0x%016x", n(name)) }
	private := func(name string) string { return p.data(t, "infiniband.cm."+name, -1) }
	switch wire.CMAttribute(p.number(t, "infiniband.mad.attributeid")) {
	case wire.AttrREQ:
		m := map[string]any{"local_id": n("req"), "service_id": hex("req.serviceid"), "port": n("req.serviceid.dport"),
			"qpn": n("req.localqpn"), "psn": n("req.startpsn"), "ca_guid": hex("req.localcaguid"),
			"responder_resources": n("req.responderres"), "initiator_depth": n("req.initdepth"), "rnr_retry_count": n("req.rnrretrcount"),
			"flow_control": n("req.e2eflowctrl") == 1, "srq": n("req.srq") == 1, "private": private("req.ip_cm.private")}
		gid := func(name string) string {
			if p.has(name + "_ipv4") {
				return p[name+"_ipv4"][0]
			}
			return p[name][0]
		}
		m["req"] = map[string]any{"remote_timeout": n("req.remoteresptout"), "local_timeout": n("req.localresptout"),
			"transport": n("req.transpsvctype"), "retry_count": n("req.retrcount"), "max_cm_retries": n("req.maxcmretr"),
			"mtu": n("req.pppmtu"), "pkey": n("req.pkey"), "tclass": n("req.prim_tfcclass"), "hop_limit": n("req.prim_hoplim"),
			"ack_timeout": n("req.prim_localacktout"),
			"local_gid":   gid("infiniband.cm.req.prim_localgid"), "remote_gid": gid("infiniband.cm.req.prim_remotegid")}
		version := n("req.ip_cm.ipv")
		m["ip"] = map[string]any{"version": version, "src_port": n("req.ip_cm.sport"),
			"src": p[fmt.Sprintf("infiniband.cm.req.ip_cm.sip%d", version)][0], "dst": p[fmt.Sprintf("infiniband.cm.req.ip_cm.dip%d", version)][0]}
		return m
	case wire.AttrREP:
		return map[string]any{"local_id": n("rep"), "remote_id": n("rep.remotecommid"), "qpn": n("rep.localqpn"), "psn": n("rep.startpsn"),
			"ca_guid": hex("rep.localcaguid"), "responder_resources": n("rep.respres"), "initiator_depth": n("rep.initdepth"),
			"rnr_retry_count": n("rep.rnrretrcount"), "flow_control": n("rep.e2eflowctrl") == 1, "srq": n("rep.srq") == 1,
			"target_ack_delay": n("rep.tgtackdelay"), "private": private("rep.private")}
	case wire.AttrREJ:
		return map[string]any{"local_id": n("rej.localcommid"), "remote_id": n("rej.remotecommid"), "about": n("rej.msgrej"),
			"reason": n("rej.reason"), "info": p.data(t, "infiniband.cm.rej.ari", int(n("rej.rejinfolen"))), "private": private("rej.private")}
	case wire.AttrRTU:
		return map[string]any{"local_id": n("rtu.localcommid"), "remote_id": n("rtu.remotecommid"), "private": private("rtu.private")}
	case wire.AttrDREQ:
		return map[string]any{"local_id": n("dreq.localcommid"), "remote_id": n("dreq.remotecommid"), "qpn": n("req.remoteqpneecn"),
			"private": private("dreq.private")}
	case wire.AttrDREP:
		return map[string]any{"local_id": n("drsp.localcommid"), "remote_id": n("drsp.remotecommid"), "private": private("drsp.private")}
	}
	return nil
}

// The line of text for each kind of message.
func TestDumpMessages(t *testing.T) {
	o := clitest.Finish(t, clitest.Tool(t, "dump", recording("rxe-6.1-cm.pcap"))).Well(t)
	for _, want := range []string{
		"mad CM ConnectRequest tid 0x288fad9b4 local 0xb4d9fa88 service tcp/7471 qpn 0x000044 psn 13842884 ip 10.99.0.1:58183 > 10.99.0.2 private 26 length 256",
		"mad CM ConnectReply tid 0x288fad9b4 local 0xb7d9fa88 remote 0xb4d9fa88 qpn 0x00008a psn 5084248 private 7 length",
		"mad CM ReadyToUse tid 0x288fad9b4 local 0xb4d9fa88 remote 0xb7d9fa88 private 0 length",
		"mad CM DisconnectRequest tid 0x288fad9b4 local 0xb4d9fa88 remote 0xb7d9fa88 qpn 0x00008a private 0 length",
		"mad CM DisconnectReply tid 0x288fad9b4 local 0xb7d9fa88 remote 0xb4d9fa88 private 0 length",
		"mad CM ConnectReject tid 0x288fad9b3 local 0x00000000 remote 0xb3d9fa88 of REQ reason 8 (invalid service id) private 0 length",
		"of REP reason 28 (consumer reject) private 15 length",
		"of other reason 4 (timeout) private 0 length",
		"mad CM MsgRcptAck tid 0x288fad9a8 local 0xabd9fa88 remote 0xa8d9fa88 of REQ timeout 24 private 0 length",
		"mad CM ServiceIDResReq tid 0x288fad9a0 request 0xa0d9fa88 service udp/7490 ip 10.99.0.1:49137 > 10.99.0.2 private 4 length 256",
		"mad CM ServiceIDResReqResp tid 0x288fad9a0 request 0xa0d9fa88 service udp/7490 status 0 (QPN and Q_Key are valid) qpn 0x123456 qkey 0x01234567 private 8 length 256",
		"service udp/7491 status 2 (rejected by the service provider) private 7 length 256",
		"service udp/7492 status 1 (service id is not supported) private 0 length 256",
	} {
		require.Contains(t, o.Stdout, want)
	}
	o = clitest.Finish(t, clitest.Tool(t, "dump", "--json", recording("rxe-6.1-cm.pcap")))
	for _, want := range []string{
		`"cm":{"request_id":2698640008,"service_id":"0x0000000001111d42","port":7490,"pkey":65535,` +
			`"ip":{"version":4,"src_port":49137,"src":"10.99.0.1","dst":"10.99.0.2"},"private_length":4,"private":"73696472"}`,
		`"port":7490,"qpn":1193046,"qkey":19088743,"status":0,"status_text":"QPN and Q_Key are valid","info":"","private_length":8,`,
		`"port":7491,"qpn":0,"qkey":0,"status":2,"status_text":"rejected by the service provider","info":"","private_length":7,`,
	} {
		require.Contains(t, o.Stdout, want)
	}
	o = clitest.Finish(t, clitest.Tool(t, "dump", recording("rxe-6.1-ipv6.pcap")))
	require.Contains(t, o.Stdout, " ip [")
}

func TestServiceName(t *testing.T) {
	for id, want := range map[wire.ServiceID]string{
		wire.TCPService(7471): "tcp/7471", wire.UDPService(7174): "udp/7174", 0x0000000001840001: "ip/132/1", 0x10000000013f0001: "0x10000000013f0001",
	} {
		require.Equal(t, want, serviceName(id))
	}
}
