package verbs

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// reregMR gives the region another remote key, as a driver may.
func (k *fake) reregMR(in []byte, answer func(abi.Struct, int) error) error {
	var req abi.ReregMR
	switch {
	case req.Parse(in) != nil, req.Flags == 0:
		return syscall.EINVAL
	case k.obj[req.MRHandle] != "mr", req.Flags&abi.ReregPD != 0 && k.obj[req.PDHandle] != "pd":
		return syscall.ENOENT
	}
	k.rereg = append(k.rereg, req)
	return answer(&abi.ReregMRResp{LKey: req.MRHandle << 8, RKey: req.MRHandle<<8 + 1}, abi.ReregMRRespSize)
}

func (k *fake) createAH(in, out, uhw []byte) error {
	var req abi.CreateAH
	switch {
	case req.Parse(in) != nil || len(out) != 4 || len(uhw) != 8 || req.Attr.IsGlobal == 0:
		return syscall.EINVAL
	case k.obj[req.PDHandle] != "pd":
		return syscall.ENOENT
	}
	h := k.newHandle("ah")
	(&abi.CreateAHResp{AHHandle: h}).Put(out)
	(&abi.RXECreateAHResp{AHNum: h + 100}).Put(uhw)
	return nil
}

func (k *fake) resizeCQ(in, out, uhw []byte) error {
	var req abi.ResizeCQ
	if err := req.Parse(in); err != nil || len(out) != 8 || len(uhw) != 16 || req.CQE > 32767 {
		return syscall.EINVAL
	}
	cq := k.cqs[req.CQHandle]
	if cq == nil {
		return syscall.ENOENT
	}
	q, err := ring.New(ring.CQElemSize, int(req.CQE))
	if err != nil {
		return err
	}
	if n, err := cq.p.Waiting(); err != nil || n > int(req.CQE) {
		return syscall.EINVAL
	}
	if cq.p, err = cq.p.MoveTo(q); err != nil {
		return err
	}
	cq.q = q
	(&abi.ResizeCQResp{CQE: uint32(q.Cap())}).Put(out)
	(&abi.RXEResizeCQResp{MI: k.share(q)}).Put(uhw)
	return nil
}
