package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

type methodID struct {
	object abi.ObjectID
	method abi.MethodID
}

// methodHandlers answer the methods of RDMA_VERBS_IOCTL that abi.Schema has as
// supported, but for INVOKE_WRITE.
var methodHandlers = map[methodID]handler{
	{abi.ObjectDevice, abi.MethodInfoHandles}:         infoHandles,
	{abi.ObjectDevice, abi.MethodQueryPort}:           methodQueryPort,
	{abi.ObjectDevice, abi.MethodGetContext}:          methodGetContext,
	{abi.ObjectDevice, abi.MethodQueryGIDTable}:       queryGIDTable,
	{abi.ObjectDevice, abi.MethodQueryGIDEntry}:       queryGIDEntry,
	{abi.ObjectPD, abi.MethodPDDestroy}:               methodDestroy,
	{abi.ObjectCQ, abi.MethodCQCreate}:                methodCreateCQ,
	{abi.ObjectCQ, abi.MethodCQDestroy}:               methodDestroy,
	{abi.ObjectQP, abi.MethodQPCreate}:                methodCreateQP,
	{abi.ObjectQP, abi.MethodQPDestroy}:               methodDestroy,
	{abi.ObjectSRQ, abi.MethodSRQCreate}:              methodCreateSRQ,
	{abi.ObjectSRQ, abi.MethodSRQDestroy}:             methodDestroy,
	{abi.ObjectAH, abi.MethodAHDestroy}:               methodDestroy,
	{abi.ObjectMW, abi.MethodMWDestroy}:               methodDestroy,
	{abi.ObjectMR, abi.MethodMRDestroy}:               methodDestroy,
	{abi.ObjectMR, abi.MethodQueryMR}:                 methodQueryMR,
	{abi.ObjectAsyncEvent, abi.MethodAsyncEventAlloc}: methodAllocAsync,
}

// maxAttrs is the most attributes that a method has.
const maxAttrs = 17

// lookupMethod is uapi_get_method: nil for methods that no kernel knows, and
// for those that it removes where the driver lacks something.
func lookupMethod(o abi.ObjectID, id abi.MethodID) *abi.Entry {
	if m := abi.LookupMethod(o, id); m != nil && m.Errno != syscall.EPROTONOSUPPORT {
		return m
	}
	return nil
}

// methodHandler returns the function that answers a method.
func methodHandler(m *abi.Entry) handler {
	if m.Lacks != "" {
		return func(*call) error { return fail(m.Errno, "not supported by this device") }
	}
	return methodHandlers[methodID{m.Object, m.Method}]
}
