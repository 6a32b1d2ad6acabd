package abitest

import "github.com/rdmashim/rdmashim/kshim/abi"

const (
	allAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic
	maskInit  = abi.QPMaskState | abi.QPMaskPkeyIndex | abi.QPMaskPort | abi.QPMaskAccessFlags
)

// Commands has the example of each command that the schema supports, by its
// name there.
var Commands = map[string]*Command{
	"GET_CONTEXT":         {func(*Objects) abi.Struct { return &abi.GetContext{} }, nil},
	"QUERY_DEVICE":        {func(*Objects) abi.Struct { return &abi.QueryDevice{} }, nil},
	"QUERY_PORT":          {func(*Objects) abi.Struct { return &abi.QueryPort{PortNum: 1} }, nil},
	"ALLOC_PD":            {func(*Objects) abi.Struct { return &abi.AllocPD{} }, nil},
	"DEALLOC_PD":          {func(o *Objects) abi.Struct { return &abi.DeallocPD{PDHandle: o.FreePD} }, []Handle{{0, abi.ObjectPD}}},
	"CREATE_AH":           {func(o *Objects) abi.Struct { return &abi.CreateAH{PDHandle: o.PD, Attr: o.Path} }, []Handle{{16, abi.ObjectPD}}},
	"DESTROY_AH":          {func(o *Objects) abi.Struct { return &abi.DestroyAH{AHHandle: o.FreeAH} }, []Handle{{0, abi.ObjectAH}}},
	"REG_MR":              {func(o *Objects) abi.Struct { return o.RegMR() }, []Handle{{32, abi.ObjectPD}}},
	"REREG_MR":            {func(o *Objects) abi.Struct { return o.reregMR() }, []Handle{{8, abi.ObjectMR}, {40, abi.ObjectPD}}},
	"DEREG_MR":            {func(o *Objects) abi.Struct { return &abi.DeregMR{MRHandle: o.FreeMR} }, []Handle{{0, abi.ObjectMR}}},
	"ALLOC_MW":            {func(o *Objects) abi.Struct { return &abi.AllocMW{PDHandle: o.PD, MWType: 1} }, []Handle{{8, abi.ObjectPD}}},
	"DEALLOC_MW":          {func(o *Objects) abi.Struct { return &abi.DeallocMW{MWHandle: o.FreeMW} }, []Handle{{0, abi.ObjectMW}}},
	"CREATE_COMP_CHANNEL": {func(*Objects) abi.Struct { return &abi.CreateCompChannel{} }, nil},
	"CREATE_CQ":           {func(o *Objects) abi.Struct { return &abi.CreateCQ{CQE: 4, CompChannel: o.Channel} }, nil},
	"RESIZE_CQ":           {func(o *Objects) abi.Struct { return &abi.ResizeCQ{CQHandle: o.CQ, CQE: 100} }, []Handle{{8, abi.ObjectCQ}}},
	"DESTROY_CQ":          {func(o *Objects) abi.Struct { return &abi.DestroyCQ{CQHandle: o.FreeCQ} }, []Handle{{8, abi.ObjectCQ}}},
	"REQ_NOTIFY_CQ":       {func(o *Objects) abi.Struct { return &abi.ReqNotifyCQ{CQHandle: o.CQ} }, []Handle{{0, abi.ObjectCQ}}},
	"CREATE_QP":           {func(o *Objects) abi.Struct { return o.CreateQP() }, []Handle{{16, abi.ObjectPD}, {20, abi.ObjectCQ}, {24, abi.ObjectCQ}}},
	"QUERY_QP":            {func(o *Objects) abi.Struct { return &abi.QueryQP{QPHandle: o.QP, AttrMask: 1} }, []Handle{{8, abi.ObjectQP}}},
	"MODIFY_QP":           {func(o *Objects) abi.Struct { return o.ModifyQP() }, []Handle{{64, abi.ObjectQP}}},
	"DESTROY_QP":          {func(o *Objects) abi.Struct { return &abi.DestroyQP{QPHandle: o.FreeQP} }, []Handle{{8, abi.ObjectQP}}},
	// QP is in RTS.
	"POST_SEND":    {func(o *Objects) abi.Struct { return &abi.PostSend{QPHandle: o.QP, WQESize: abi.SendWRSize} }, []Handle{{8, abi.ObjectQP}}},
	"ATTACH_MCAST": {func(o *Objects) abi.Struct { return o.AttachMcast() }, []Handle{{16, abi.ObjectQP}}},
	// UD is in the group.
	"DETACH_MCAST": {func(o *Objects) abi.Struct { return &abi.DetachMcast{QPHandle: o.UD, GID: o.Group} }, []Handle{{16, abi.ObjectQP}}},
	"CREATE_SRQ":   {func(o *Objects) abi.Struct { return o.CreateSRQ() }, []Handle{{16, abi.ObjectPD}}},
	"CREATE_XSRQ":  {func(o *Objects) abi.Struct { return o.CreateXSRQ(abi.SRQTBasic) }, []Handle{{20, abi.ObjectPD}}},
	"MODIFY_SRQ":   {func(o *Objects) abi.Struct { return o.ModifySRQ(1) }, []Handle{{0, abi.ObjectSRQ}}},
	"QUERY_SRQ":    {func(o *Objects) abi.Struct { return &abi.QuerySRQ{SRQHandle: o.SRQ} }, []Handle{{8, abi.ObjectSRQ}}},
	"DESTROY_SRQ":  {func(o *Objects) abi.Struct { return &abi.DestroySRQ{SRQHandle: o.FreeSRQ} }, []Handle{{8, abi.ObjectSRQ}}},

	"EX_QUERY_DEVICE": {func(*Objects) abi.Struct { return Zeros(8) }, nil},
	"EX_CREATE_CQ":    {func(o *Objects) abi.Struct { return &abi.ExCreateCQ{CQE: 4, CompChannel: o.Channel} }, nil},
	"EX_CREATE_QP":    {func(o *Objects) abi.Struct { return o.ExCreateQP() }, []Handle{{8, abi.ObjectPD}, {12, abi.ObjectCQ}, {16, abi.ObjectCQ}}},
	"EX_MODIFY_QP":    {func(o *Objects) abi.Struct { return &abi.ExModifyQP{Base: *o.ModifyQP()} }, []Handle{{64, abi.ObjectQP}}},
}

// RegMR registers a page.
func (o *Objects) RegMR() *abi.RegMR {
	return &abi.RegMR{Start: o.Buffer, Length: 4096, HCAVA: o.Buffer, PDHandle: o.PD, AccessFlags: abi.AccessLocalWrite}
}

// reregMR moves a region to the other page.
func (o *Objects) reregMR() *abi.ReregMR {
	return &abi.ReregMR{
		MRHandle: o.MR, Flags: abi.ReregSupported, Start: o.Buffer + 4096, Length: 4096, HCAVA: o.Buffer,
		PDHandle: o.FreePD, AccessFlags: allAccess,
	}
}

// CreateQP makes a queue pair of reliable connections.
func (o *Objects) CreateQP() *abi.CreateQP {
	return &abi.CreateQP{
		UserHandle: 6, PDHandle: o.PD, SendCQHandle: o.CQ, RecvCQHandle: o.CQ,
		MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1, QPType: abi.QPTRC,
	}
}

// ExCreateQP makes the same.
func (o *Objects) ExCreateQP() *abi.ExCreateQP {
	q := o.CreateQP()
	return &abi.ExCreateQP{
		UserHandle: q.UserHandle, PDHandle: q.PDHandle, SendCQHandle: q.SendCQHandle, RecvCQHandle: q.RecvCQHandle,
		MaxSendWR: q.MaxSendWR, MaxRecvWR: q.MaxRecvWR, MaxSendSGE: q.MaxSendSGE, MaxRecvSGE: q.MaxRecvSGE, QPType: q.QPType,
	}
}

// ModifyQP takes the free queue pair from RESET to INIT.
func (o *Objects) ModifyQP() *abi.ModifyQP {
	return &abi.ModifyQP{QPHandle: o.FreeQP, AttrMask: maskInit, QPState: abi.QPSInit, PortNum: 1, QPAccessFlags: allAccess}
}

// AttachMcast has the queue pair for datagrams join the group.
func (o *Objects) AttachMcast() *abi.AttachMcast {
	return &abi.AttachMcast{QPHandle: o.UD, GID: o.Group}
}

// CreateSRQ makes a shared receive queue.
func (o *Objects) CreateSRQ() *abi.CreateSRQ {
	return &abi.CreateSRQ{UserHandle: 8, PDHandle: o.PD, MaxWR: 4, MaxSGE: 1}
}

// CreateXSRQ makes one of a type; only the basic one has no other objects.
func (o *Objects) CreateXSRQ(t abi.SRQType) *abi.CreateXSRQ {
	return &abi.CreateXSRQ{UserHandle: 8, SRQType: t, PDHandle: o.PD, MaxWR: 4, MaxSGE: 1, XRCDHandle: 0x7fff0000, CQHandle: o.CQ}
}

// ModifySRQ arms the limit.
func (o *Objects) ModifySRQ(limit uint32) *abi.ModifySRQ {
	return &abi.ModifySRQ{SRQHandle: o.SRQ, AttrMask: abi.SRQMaskLimit, SRQLimit: limit}
}
