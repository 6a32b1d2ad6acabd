package netlinktest

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// Busy is a machine with a link and an object of each kind on it, those of
// process 321.
func Busy() *Kernel {
	k := New()
	k.LoadRXE()
	k.Files["proc/321/comm"] = "worker\n"
	l := k.AddLink("rxe0", "eth0", true)
	user, kernel := netlinkmgr.Owner{PID: 321}, netlinkmgr.Owner{Kernel: true, Comm: "ib_core"}
	rc := netlinkmgr.QPType(2)
	l.Objects = Objects{
		QPs: []netlinkmgr.QP{
			{Port: new(uint32(1)), LQPN: 17, RQPN: new(uint32(18)), RQPSN: new(uint32(5)), SQPSN: 6, PathMig: new(netlinkmgr.PathMigState(0)), Type: rc, State: 3, PDN: new(uint32(2)), Owner: user},
			{LQPN: 1, Type: 1, State: 3, Owner: kernel},
		},
		CQs:      []netlinkmgr.CQ{{CQN: new(uint32(3)), CQE: 255, Users: 2, CtxN: new(uint32(4)), Owner: user}},
		MRs:      []netlinkmgr.MR{{MRN: new(uint32(1)), RKey: new(uint32(0x1f2)), LKey: new(uint32(0x1f2)), Length: 4096, PDN: new(uint32(2)), Owner: user}},
		PDs:      []netlinkmgr.PD{{PDN: new(uint32(2)), LocalDMALKey: new(uint32(0)), Users: 3, CtxN: new(uint32(4)), Owner: user}},
		CMIDs:    []netlinkmgr.CMID{{Port: new(uint32(1)), CMIDN: new(uint32(9)), LQPN: new(uint32(17)), QPType: &rc, State: 5, PortSpace: 0x106, Src: netip.MustParseAddrPort("10.0.2.15:7000"), Dst: netip.MustParseAddrPort("[fd00::2]:18515"), Owner: user}},
		Contexts: []netlinkmgr.Context{{CtxN: 4, Owner: user}},
		Counters: []netlinkmgr.Counter{{Name: "sent_pkts", Value: 12}, {Name: "rcvd_pkts", Value: 34}},
	}
	return k
}
