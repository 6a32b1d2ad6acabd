//go:build linux || darwin

package conform

import (
	"bytes"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// inDomain is a patient configuration in a new protection domain of the
// device.
func (r *rig) inDomain(d *uapi.Device) uapi.QPConfig {
	config := patient()
	config.PD = must.Get(d.CreatePD())(r)
	return config
}

// uapiDomainTests are the handle API's protection domains.
var uapiDomainTests = []test{
	{"uapi/domain", func(r *rig) {
		a, b := r.uapiOpen(0), r.uapiOpen(1)
		pd, err := a.CreatePD()
		r.say("CreatePD: %s, a handle: %t", errText(err), pd > 0)
		r.result("DestroyPD of the other side", b.DestroyPD(pd))
		r.result("RegMRWith of the other side", errOf(b.RegMRWith(make([]byte, 8), uapi.MRConfig{PD: pd})))
		r.result("DestroyPD of the device's own", a.DestroyPD(0))
		r.result("DestroyPD", a.DestroyPD(pd))
		r.result("DestroyPD", a.DestroyPD(pd))
		r.result("RegMRWith in what is gone", errOf(a.RegMRWith(make([]byte, 8), uapi.MRConfig{PD: pd})))
		r.result("CreateQPWith in what is gone", errOf(a.CreateQPWith(uapi.QPConfig{PD: pd})))
		to := must.Get(b.QueryDevice())(r)
		r.result("CreateAH in what is gone", errOf(a.CreateAH(to.Address, uapi.AHConfig{PD: pd})))
		r.say("left: %v", a.OpenHandles())
	}},
	{"uapi/domain-busy", func(r *rig) {
		a, b := r.uapiOpen(0), r.uapiOpen(1)
		to := must.Get(b.QueryDevice())(r)
		config := r.inDomain(a)
		mr, err := a.RegMRWith(make([]byte, 8), uapi.MRConfig{Access: uapiAll, PD: config.PD})
		r.result("RegMRWith", err)
		r.result("DestroyPD with a region", a.DestroyPD(config.PD))
		qp, err := a.CreateQPWith(config)
		r.result("CreateQPWith", err)
		region := must.Get(a.QueryMR(mr))(r)
		pair := must.Get(a.QueryQP(qp))(r)
		r.say("QueryMR and QueryQP tell it: %t, %t", region.PD == config.PD, pair.PD == config.PD)
		r.must(a.DeregMR(mr))
		r.result("DestroyPD with a queue pair", a.DestroyPD(config.PD))
		ah, err := a.CreateAH(to.Address, uapi.AHConfig{PD: config.PD})
		r.result("CreateAH", err)
		r.must(a.DestroyQP(qp))
		r.result("DestroyPD with an address handle", a.DestroyPD(config.PD))
		r.must(a.DestroyAH(ah))
		r.result("DestroyPD", a.DestroyPD(config.PD))
	}},
	{"uapi/domain-post", func(r *rig) {
		// Memory of another domain is refused at the post; the queue pair lives
		// on.
		server, client := r.uapiOpen(0), r.uapiOpen(1)
		b := r.newHandles("b", server, patient())
		a := r.newHandles("a", client, r.inDomain(client))
		own := must.Get(client.RegMR(make([]byte, 64), uapiAll))(r)
		r.join(a, b)
		r.result("WRITE from another domain's region", errOf(a.PostWrite(a.qp, own, 0, b.info.Addr, b.info.RKey, 8)))
		r.result("READ into it", errOf(a.PostRead(a.qp, own, 0, b.info.Addr, b.info.RKey, 8)))
		r.result("receive into it", errOf(a.PostRecv(a.qp, own, 0, 8)))
		a.write(b)

		config := uapi.QPConfig{Type: uapi.TypeUD, PD: a.info.PD, SendDepth: 4}
		ud := must.Get(client.CreateQPWith(config))(r)
		there := must.Get(server.QueryDevice())(r)
		ah := must.Get(client.CreateAH(there.Address, uapi.AHConfig{}))(r)
		r.result("datagram by another domain's address handle", errOf(client.PostSendTo(ud, ah, 99, 0, a.mr, 0, 8)))
		ah = must.Get(client.CreateAH(there.Address, uapi.AHConfig{PD: a.info.PD}))(r)
		a.posted(client.PostSendTo(ud, ah, 99, 0, a.mr, 0, 8))
		a.qp = ud
		a.next(1)
	}},
	{"uapi/domain-attack", func(r *rig) {
		// A client that knows another's key and address, of one server.
		server := r.uapiOpen(0)
		victim := r.newHandles("victim's server", server, r.inDomain(server))
		copy(victim.buf, "private")
		client := r.uapiOpen(1)
		honest := r.newHandles("victim", client, patient())
		r.join(honest, victim)
		for _, attack := range []struct {
			what string
			op   uapi.Op
			size uint64
		}{{"READ", uapi.OpRead, 64}, {"WRITE", uapi.OpWrite, 64}, {"WRITE of nothing", uapi.OpWrite, 0}, {"FETCH_ADD", uapi.OpFetchAdd, 8}, {"CMP_SWAP", uapi.OpCompareSwap, 8}} {
			other := r.newHandles("thief's server", server, r.inDomain(server))
			thief := r.newHandles("thief", client, patient())
			r.join(thief, other)
			_, err := thief.Post(thief.qp, []uapi.WR{{
				Op: attack.op, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: thief.mr, Length: attack.size}},
				RemoteAddr: victim.info.Addr, RKey: victim.info.RKey, CompareAdd: 1, Swap: 1,
			}})
			r.result(attack.what, err)
			thief.next(1)
			r.say("the thief has it: %t", bytes.Contains(thief.buf, []byte("private")))
		}
		honest.posted(honest.PostRead(honest.qp, honest.mr, 0, victim.info.Addr, victim.info.RKey, 64))
		honest.next(1)
		r.say("the victim's memory: %q", bytes.TrimRight(honest.buf[:64], "\x00"))
		victim.sayInfo()
	}},
	{"uapi/domain-shared", func(r *rig) {
		// Without domains peers share, and so they do in one domain.
		server, client := r.uapiOpen(0), r.uapiOpen(1)
		for _, config := range []uapi.QPConfig{patient(), r.inDomain(server)} {
			x := r.newHandles("x", server, config)
			y := r.newHandles("y", server, config)
			a := r.newHandles("a", client, patient())
			r.join(a, y)
			a.write(x)
		}
	}},
}
