package abi

import (
	"strings"
	"syscall"
)

// AttrType is the type of an attribute: enum uverbs_attr_type, divided further
// as the kernel's macros do.
type AttrType uint8

const (
	AttrIn            AttrType = iota // bytes that the kernel reads
	AttrOut                           // room that it writes to
	AttrConst                         // a number, 8 bytes
	AttrFlags                         // flags, 4 or 8 bytes
	AttrHandle                        // a handle of an object that is used
	AttrHandleNew                     // gets the handle of the object that is made
	AttrHandleDestroy                 // a handle of the object that is destroyed
	AttrFD                            // a descriptor that is used
	AttrFDNew                         // gets the descriptor that is made
)

var attrTypeNames = [...]string{
	AttrIn: "in", AttrOut: "out", AttrConst: "in: number", AttrFlags: "in: flags", AttrHandle: "in: handle",
	AttrHandleNew: "out: handle", AttrHandleDestroy: "in: handle, destroyed", AttrFD: "in: descriptor", AttrFDNew: "out: descriptor",
}

func (t AttrType) String() string { return attrTypeNames[t] }

// NamesObject says that an attribute is a handle or a descriptor: it has no
// bytes, and the number stands in IoctlAttr.Data.
func (t AttrType) NamesObject() bool { return t >= AttrHandle }

// AnyLength as an attribute's Max is no bound but the field's.
const AnyLength = 1<<16 - 1

// Attr is one attribute of a method (struct uverbs_attr_spec).
type Attr struct {
	Name      string // the kernel's without UVERBS_ATTR_
	ID        AttrID
	Type      AttrType
	Object    ObjectID // of handles and descriptors
	Min, Max  int      // bytes; both 0 of handles and descriptors
	Mandatory bool     // the client must give it
	Longer    bool     // may be longer than Max where the rest is zero (zero_trailing)
	Layout    Layout   // of a structure
}

// AttrIndex returns where an attribute stands in Attrs, or -1. But for the
// driver's that is its number.
func (e *Entry) AttrIndex(id AttrID) int {
	for i := range e.Attrs {
		if e.Attrs[i].ID == id {
			return i
		}
	}
	return -1
}

// ShortAttr is an attribute's Name without the prefix of the method's
// attributes.
func (e *Entry) ShortAttr(a *Attr) string { return strings.TrimPrefix(a.Name, e.prefix) }

// methods are all that the headers of Linux 6.1 have. Of attributes that it
// removes where a driver lacks their means, only the names count.
var methods = []Entry{
	method(ObjectDevice, MethodInvokeWrite, "INVOKE_WRITE", "",
		input("CORE_IN", 4, AnyLength).opt(), outputFrom("CORE_OUT", opaque(0)).opt(), number("WRITE_CMD"), uhwIn, uhwOut),
	method(ObjectDevice, MethodInfoHandles, "INFO_HANDLES", "INFO_",
		number("OBJECT_ID"), output("TOTAL_HANDLES", opaque(4)).opt(), outputFrom("HANDLES_LIST", opaque(4)).opt()),
	method(ObjectDevice, MethodQueryPort, "QUERY_PORT", "QUERY_PORT_",
		number("PORT_NUM"), outputFrom("RESP", Layout{QueryPortRespExSize, func() Struct { return new(QueryPortResp) }})),
	method(ObjectDevice, MethodGetContext, "GET_CONTEXT", "GET_CONTEXT_",
		output("NUM_COMP_VECTORS", opaque(4)).opt(), output("CORE_SUPPORT", opaque(8)).opt(), uhwIn, uhwOut),
	refused(method(ObjectDevice, MethodQueryContext, "QUERY_CONTEXT", "QUERY_CONTEXT_",
		output("NUM_COMP_VECTORS", opaque(4)).opt(), output("CORE_SUPPORT", opaque(8)).opt())),
	method(ObjectDevice, MethodQueryGIDTable, "QUERY_GID_TABLE", "QUERY_GID_TABLE_",
		number("ENTRY_SIZE"), flags("FLAGS").opt(), outputFrom("RESP_ENTRIES", opaque(0)), output("RESP_NUM_ENTRIES", opaque(8))),
	method(ObjectDevice, MethodQueryGIDEntry, "QUERY_GID_ENTRY", "QUERY_GID_ENTRY_",
		number("PORT"), number("GID_INDEX"), flags("FLAGS"), outputFrom("RESP_ENTRY", of[GIDEntry](GIDEntrySize))),
	method(ObjectPD, MethodPDDestroy, "PD_DESTROY", "DESTROY_PD_", handle(AttrHandleDestroy, "HANDLE", ObjectPD)),
	method(ObjectCQ, MethodCQCreate, "CQ_CREATE", "CREATE_CQ_",
		handle(AttrHandleNew, "HANDLE", ObjectCQ), input("CQE", 4, 4), input("USER_HANDLE", 8, 8),
		handle(AttrFD, "COMP_CHANNEL", ObjectCompChannel).opt(), input("COMP_VECTOR", 4, 4), flags("FLAGS").opt(),
		output("RESP_CQE", opaque(4)), handle(AttrFD, "EVENT_FD", ObjectAsyncEvent).opt(), uhwIn, uhwOut),
	method(ObjectCQ, MethodCQDestroy, "CQ_DESTROY", "DESTROY_CQ_",
		handle(AttrHandleDestroy, "HANDLE", ObjectCQ), output("RESP", of[DestroyCQResp](DestroyCQRespSize))),
	method(ObjectQP, MethodQPCreate, "QP_CREATE", "CREATE_QP_",
		handle(AttrHandleNew, "HANDLE", ObjectQP), handle(AttrHandle, "XRCD_HANDLE", ObjectXRCD).opt(),
		handle(AttrHandle, "PD_HANDLE", ObjectPD).opt(), handle(AttrHandle, "SRQ_HANDLE", ObjectSRQ).opt(),
		handle(AttrHandle, "SEND_CQ_HANDLE", ObjectCQ).opt(), handle(AttrHandle, "RECV_CQ_HANDLE", ObjectCQ).opt(),
		handle(AttrHandle, "IND_TABLE_HANDLE", ObjectRWQIndTbl).opt(), input("USER_HANDLE", 8, 8),
		structure("CAP", of[QPCap](QPCapSize)), number("TYPE"), flags("FLAGS").opt(), input("SOURCE_QPN", 4, 4).opt(),
		handle(AttrFD, "EVENT_FD", ObjectAsyncEvent).opt(), outputFrom("RESP_CAP", of[QPCap](QPCapSize)),
		output("RESP_QP_NUM", opaque(4)), uhwIn, uhwOut),
	method(ObjectQP, MethodQPDestroy, "QP_DESTROY", "DESTROY_QP_",
		handle(AttrHandleDestroy, "HANDLE", ObjectQP), output("RESP", of[DestroyQPResp](DestroyQPRespSize))),
	method(ObjectSRQ, MethodSRQCreate, "SRQ_CREATE", "CREATE_SRQ_",
		handle(AttrHandleNew, "HANDLE", ObjectSRQ), handle(AttrHandle, "PD_HANDLE", ObjectPD),
		handle(AttrHandle, "XRCD_HANDLE", ObjectXRCD).opt(), handle(AttrHandle, "CQ_HANDLE", ObjectCQ).opt(),
		input("USER_HANDLE", 8, 8), input("MAX_WR", 4, 4), input("MAX_SGE", 4, 4), input("LIMIT", 4, 4),
		input("MAX_NUM_TAGS", 4, 4).opt(), number("TYPE"), handle(AttrFD, "EVENT_FD", ObjectAsyncEvent).opt(),
		output("RESP_MAX_WR", opaque(4)), output("RESP_MAX_SGE", opaque(4)), output("RESP_SRQ_NUM", opaque(4)).opt(), uhwIn, uhwOut),
	method(ObjectSRQ, MethodSRQDestroy, "SRQ_DESTROY", "DESTROY_SRQ_",
		handle(AttrHandleDestroy, "HANDLE", ObjectSRQ), output("RESP", of[DestroySRQResp](DestroySRQRespSize))),
	method(ObjectAH, MethodAHDestroy, "AH_DESTROY", "DESTROY_AH_", handle(AttrHandleDestroy, "HANDLE", ObjectAH)),
	removed(ObjectMR, MethodDMMRReg, "DM_MR_REG"),
	method(ObjectMR, MethodMRDestroy, "MR_DESTROY", "DESTROY_MR_", handle(AttrHandleDestroy, "HANDLE", ObjectMR)),
	refused(method(ObjectMR, MethodAdviseMR, "ADVISE_MR", "ADVISE_MR_",
		handle(AttrHandle, "PD_HANDLE", ObjectPD), number("ADVICE"), flags("FLAGS"), input("SGE_LIST", 16, AnyLength))),
	method(ObjectMR, MethodQueryMR, "QUERY_MR", "QUERY_MR_",
		handle(AttrHandle, "HANDLE", ObjectMR), output("RESP_LKEY", opaque(4)), output("RESP_RKEY", opaque(4)),
		output("RESP_LENGTH", opaque(8)), output("RESP_IOVA", opaque(8)).opt()),
	refused(method(ObjectMR, MethodRegDMABufMR, "REG_DMABUF_MR", "REG_DMABUF_MR_",
		handle(AttrHandleNew, "HANDLE", ObjectMR), handle(AttrHandle, "PD_HANDLE", ObjectPD), input("OFFSET", 8, 8),
		input("LENGTH", 8, 8), input("IOVA", 8, 8), input("FD", 4, 4), flags("ACCESS_FLAGS"),
		output("RESP_LKEY", opaque(4)), output("RESP_RKEY", opaque(4)))),
	method(ObjectMW, MethodMWDestroy, "MW_DESTROY", "DESTROY_MW_", handle(AttrHandleDestroy, "HANDLE", ObjectMW)),
	removed(ObjectFlow, MethodFlowDestroy, "FLOW_DESTROY"),
	removed(ObjectXRCD, MethodXRCDDestroy, "XRCD_DESTROY"),
	removed(ObjectRWQIndTbl, MethodRWQIndTblDestroy, "RWQ_IND_TBL_DESTROY"),
	removed(ObjectWQ, MethodWQCreate, "WQ_CREATE"),
	removed(ObjectWQ, MethodWQDestroy, "WQ_DESTROY"),
	removed(ObjectFlowAction, MethodFlowActionESPCreate, "FLOW_ACTION_ESP_CREATE"),
	removed(ObjectFlowAction, MethodFlowActionDestroy, "FLOW_ACTION_DESTROY"),
	removed(ObjectFlowAction, MethodFlowActionESPModify, "FLOW_ACTION_ESP_MODIFY"),
	removed(ObjectDM, MethodDMAlloc, "DM_ALLOC"),
	removed(ObjectDM, MethodDMFree, "DM_FREE"),
	removed(ObjectCounters, MethodCountersCreate, "COUNTERS_CREATE"),
	removed(ObjectCounters, MethodCountersDestroy, "COUNTERS_DESTROY"),
	removed(ObjectCounters, MethodCountersRead, "COUNTERS_READ"),
	method(ObjectAsyncEvent, MethodAsyncEventAlloc, "ASYNC_EVENT_ALLOC", "ASYNC_EVENT_ALLOC_",
		handle(AttrFDNew, "FD_HANDLE", ObjectAsyncEvent)),
}

// method is a row. Attributes are numbered in their order, but for the
// driver's, and their names begin with prefix.
func method(o ObjectID, id MethodID, name, prefix string, attrs ...Attr) Entry {
	e := Entry{Name: o.String() + "." + name, Form: FormIoctl, Object: o, Method: id, prefix: prefix, Attrs: attrs}
	for i := range attrs {
		if attrs[i].ID == 0 {
			attrs[i].ID, attrs[i].Name = AttrID(i), prefix+attrs[i].Name
		} else {
			e.Driver = true
		}
	}
	return e
}

// refused is a method whose attributes the kernel checks before it finds that
// the driver does not have it.
func refused(e Entry) Entry {
	e.Lacks, e.Errno = optional, syscall.EOPNOTSUPP
	return e
}

// removed is a method that the kernel does not have for such a device.
func removed(o ObjectID, id MethodID, name string) Entry {
	e := method(o, id, name, "")
	e.Lacks, e.Errno = optional, syscall.EPROTONOSUPPORT
	return e
}

// uhwIn and uhwOut are UVERBS_ATTR_UHW.
var (
	uhwIn  = Attr{Name: "UHW_IN", ID: AttrUHWIn, Type: AttrIn, Max: AnyLength}
	uhwOut = Attr{Name: "UHW_OUT", ID: AttrUHWOut, Type: AttrOut, Max: AnyLength}
)

func input(name string, least, most int) Attr {
	return Attr{Name: name, Type: AttrIn, Min: least, Max: most, Mandatory: true}
}

// structure is an input of which clients may know a longer version.
func structure(name string, l Layout) Attr {
	return Attr{Name: name, Type: AttrIn, Min: l.Size, Max: l.Size, Mandatory: true, Longer: true, Layout: l}
}

func output(name string, l Layout) Attr {
	return Attr{Name: name, Type: AttrOut, Min: l.Size, Max: l.Size, Mandatory: true, Layout: l}
}

// outputFrom is a structure for clients that may know a longer version.
func outputFrom(name string, l Layout) Attr {
	return Attr{Name: name, Type: AttrOut, Min: l.Size, Max: AnyLength, Mandatory: true, Layout: l}
}

func number(name string) Attr {
	return Attr{Name: name, Type: AttrConst, Min: 8, Max: 8, Mandatory: true}
}

func flags(name string) Attr {
	return Attr{Name: name, Type: AttrFlags, Min: 4, Max: 8, Mandatory: true}
}

func handle(t AttrType, name string, o ObjectID) Attr {
	return Attr{Name: name, Type: t, Object: o, Mandatory: true}
}

func (a Attr) opt() Attr {
	a.Mandatory = false
	return a
}
