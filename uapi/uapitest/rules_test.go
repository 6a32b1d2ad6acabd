package uapitest_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// packets are options by which 1,000 bytes are four packets of 256.
const packets = "mtu=256&extensions=off"

// messages makes x send messages of all kinds to y, one after another, each of
// which arrives.
func messages(t testing.TB, x, y *uapitest.End) {
	const long, short = 1000, 8
	for i, n := range []uint64{long, short} {
		there := must.Get(x.Peer.Slice(0, n))(t)
		local := uapi.SGE{MR: x.MR, Length: n}
		x.Buf[0] = byte(7 + i)
		y.Must(y.PostRecv(y.QP, y.MR, 4096, long))
		x.Must(x.PostSend(x.QP, x.MR, n))
		x.Next(1)
		require.Equal(t, x.Buf[:n], y.Buf[4096:][:y.Next(1)[0].ByteLen])
		x.Must(x.Write(x.QP, local, there))
		x.Next(1)
		require.Equal(t, x.Buf[:n], y.Buf[:n])
		y.Must(y.PostRecv(y.QP, y.MR, 4096, long))
		x.Must(x.WriteImm(x.QP, local, there, 9))
		x.Next(1)
		y.Next(1)
		clear(x.Buf[:n])
		x.Must(x.Read(x.QP, local, there))
		x.Next(1)
		require.True(t, bytes.Equal(x.Buf[:n], y.Buf[:n]))
	}
	word := must.Get(x.Peer.Slice(2048, 8))(t)
	x.Must(x.FetchAdd(x.QP, uapi.SGE{MR: x.MR, Length: 8}, word, 1))
	x.Next(1)
	x.Must(x.CompareSwap(x.QP, uapi.SGE{MR: x.MR, Length: 8}, word, 1, 2))
	x.Next(1)
}

// hits is how often the devices' first rule has hit a packet.
func hits(t testing.TB, ends ...*uapitest.End) (n uint64) {
	for _, e := range ends {
		n += must.Get(e.Counters())(t)["fault_rule_1"]
	}
	return n
}

// ruled are packets that each of messages has, once at least.
var ruled = []string{
	"SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_ONLY", "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST", "WRITE_LAST_IMM", "WRITE_ONLY", "WRITE_ONLY_IMM",
	"READ_REQUEST", "READ_RESPONSE_FIRST", "READ_RESPONSE_MIDDLE", "READ_RESPONSE_LAST", "READ_RESPONSE_ONLY",
	"FETCH_ADD", "COMPARE_SWAP", "ATOMIC_ACKNOWLEDGE", "ACK",
}

// TestRules: each kind of packet is lost at its first, second and third place,
// once on each connection, in every run, and all arrives.
func TestRules(t *testing.T) {
	for _, op := range ruled {
		for nth := 1; nth <= 3; nth++ {
			t.Run(fmt.Sprintf("%s/%d", op, nth), func(t *testing.T) {
				t.Parallel()
				test := func(t *testing.T) {
					a, b := uapitest.Pair(t, fmt.Sprintf("fault=drop op=%s nth=%d&%s", op, nth, packets))
					for i := range uint64(3) {
						x, y := uapitest.Connect(t, a, b)
						for range 3 {
							messages(t, x, y)
						}
						require.Equal(t, i+1, hits(t, x, y))
					}
				}
				// In time that passes, on a machine that may be busy, a timeout
				// makes the next READ ask for single packets.
				if nth == 3 && !strings.HasPrefix(op, "READ_RESPONSE_") {
					test(t)
				} else {
					synctest.Test(t, test)
				}
			})
		}
	}
}

// TestRulesOfAnswers: refusals and notices of congestion, which other rules
// make, are lost at their first, second and third place.
func TestRulesOfAnswers(t *testing.T) {
	for op, cause := range map[string]string{
		"NAK": "drop op=WRITE_MIDDLE nth=1..60",
		"CNP": "ecn op=WRITE_MIDDLE",
	} {
		for nth := 1; nth <= 3; nth++ {
			t.Run(fmt.Sprintf("%s/%d", op, nth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, b := uapitest.Pair(t, fmt.Sprintf("fault=drop op=%s nth=%d;%s&delay=1ms&%s", op, nth, cause, packets))
					for i := range uint64(2) {
						x, y := uapitest.Connect(t, a, b)
						for range 30 {
							x.Must(x.Write(x.QP, uapi.SGE{MR: x.MR, Length: 1000}, x.Peer))
							x.Next(1)
						}
						require.Equal(t, i+1, hits(t, x, y))
					}
				})
			})
		}
	}
}

// TestRuleActions: what becomes of a connection by each action.
func TestRuleActions(t *testing.T) {
	write := func(t *testing.T, rule string) (x, y *uapitest.End, wc uapi.WC) {
		a, b := uapitest.Pair(t, "fault="+rule+"&"+packets)
		x, y = uapitest.Connect(t, a, b)
		x.Must(x.Write(x.QP, uapi.SGE{MR: x.MR, Length: 20000}, x.Peer))
		return x, y, x.NextUnchecked(1)[0]
	}
	counter := func(t *testing.T, e *uapitest.End, name string) uint64 {
		return must.Get(e.Counters())(t)[name]
	}
	all := map[string]struct {
		status  uapi.Status
		counter string // of the requester, or, behind "peer ", of the responder
	}{
		"nak=ACCESS nth=1":                     {uapi.WCRemAccessErr, "nak_access_rcvd"},
		"nak=REQ nth=1":                        {uapi.WCRemInvReqErr, ""},
		"nak=PSN nth=1":                        {uapi.WCSuccess, "retransmitted_pkts"},
		"nak=RNR nth=1":                        {uapi.WCSuccess, "rcvd_rnr_err"},
		"dup op=WRITE_MIDDLE nth=2":            {uapi.WCSuccess, "peer duplicate_request"},
		"corrupt=30 op=WRITE_MIDDLE nth=2":     {uapi.WCSuccess, "peer drop_icrc"},
		"reorder=2 op=WRITE_MIDDLE nth=2":      {uapi.WCSuccess, "fault_reorder"},
		"delay=1ms op=WRITE_LAST":              {uapi.WCSuccess, "fault_delay"},
		"blackhole op=WRITE_MIDDLE for=10ms":   {uapi.WCSuccess, "retransmitted_pkts"},
		"blackhole op=WRITE_MIDDLE":            {uapi.WCRetryExcErr, "fault_loss"},
		"drop op=ACK once":                     {uapi.WCSuccess, "peer fault_rule_1"},
		"nak=RNR op=ACK nth=1..5":              {uapi.WCSuccess, "rcvd_rnr_err"},
		"blackhole op=ACK":                     {uapi.WCRetryExcErr, "peer fault_loss"},
		"delay=20ms op=ACK":                    {uapi.WCSuccess, "peer fault_delay"},
		"blackhole nth=50 for=100ms":           {uapi.WCSuccess, "retransmit_timeouts"},
		"drop psn=+40 qp=first":                {uapi.WCRetryExcErr, "fault_loss"},
		"dup op=CM_REQ":                        {}, // TestRulesOfConnections
		"ecn op=WRITE_MIDDLE every=2":          {uapi.WCSuccess, "peer np_ecn_marked_roce_packets"},
		"drop psn=+1..+2 once":                 {uapi.WCSuccess, "fault_loss"},
		"drop op=WRITE_LAST size=32 qp=first":  {uapi.WCRetryExcErr, "fault_loss"}, // repeated ones, too
		"drop op=WRITE_FIRST nth=1; drop once": {uapi.WCSuccess, "fault_loss"},
	}
	page := must.Get(os.ReadFile("../../docs/faults.md"))(t)
	_, recipes, _ := strings.Cut(string(page), "| recipe |")
	recipes, _, _ = strings.Cut(recipes, "\n\n")
	found := regexp.MustCompile("(?m)^\\| .*? \\| `(.*)` \\|$").FindAllStringSubmatch(recipes, -1)
	require.NotEmpty(t, found)
	for _, recipe := range found {
		require.Contains(t, all, recipe[1], "a recipe of docs/faults.md that is not tried")
	}
	delete(all, "dup op=CM_REQ")
	for rule, want := range all {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, y, wc := write(t, rule)
				require.Equal(t, want.status, wc.Status)
				if name, peer := strings.CutPrefix(want.counter, "peer "); peer {
					require.NotZero(t, counter(t, y, name))
				} else if want.counter != "" {
					require.NotZero(t, counter(t, x, want.counter))
				}
				if wc.Status == uapi.WCSuccess {
					require.Equal(t, x.Buf[:20000], y.Buf[:20000])
				}
			})
		})
	}
}

// TestRulesOfConnections: each message of the connection manager is lost once,
// and the connection comes about, and ends.
func TestRulesOfConnections(t *testing.T) {
	for _, op := range []string{"CM_REQ", "CM_REP", "CM_RTU", "CM_DREQ"} {
		for _, action := range []string{"drop", "dup", "delay=2ms"} {
			t.Run(op+"/"+action, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, l := uapitest.Listen(t, "fault="+action+" nth=1 op="+op)
					x, y := uapitest.Dial(t, a, l)
					messages(t, x, y)
					require.NoError(t, x.Disconnect(x.QP))
				})
			})
		}
	}
}

// TestIdleRule: a rule that hits nothing fails its test, and one that hits a
// packet of either device does not.
func TestIdleRule(t *testing.T) {
	f := &fakeT{}
	errors := f.run(func(t uapitest.T) {
		a, b := uapitest.Pair(t, "fault=drop op=READ_RESPONSE_ONLY nth=1&fault=drop op=CNP")
		x, _ := uapitest.Connect(t, a, b)
		x.Must(x.Read(x.QP, uapi.SGE{MR: x.MR, Length: 8}, x.Peer))
		x.Next(1)
	})
	require.Equal(t, []string{`uapitest: fault_rule_2 is 0: a rule of "fault=drop op=READ_RESPONSE_ONLY nth=1&fault=drop op=CNP" never hit anything`}, errors)
	logged := fmt.Sprint(f.log)
	require.Contains(t, logged, "a rule of faults never hit a packet")
	require.Contains(t, logged, "drop op=CNP")
}
