// Package nldev encodes and decodes the attributes of NETLINK_RDMA messages by
// the names of the kernel's header (include/uapi/rdma/rdma_netlink.h) without
// RDMA_NLDEV_ATTR_: "RES_LQPN". A structure's tags name its fields' attributes.
//
// Messages carry attributes behind the netlink header and no header of their
// own (drivers/infiniband/core/nldev.c). The enumerations only grow, so an
// attribute that no field names is skipped; one of a wrong size, or the lack of
// one that is required, is an Error.
//
// It sends and receives nothing: netlinkmgr has a structure encoded, sends the
// message, and has the attributes of each answer decoded into another.
package nldev
