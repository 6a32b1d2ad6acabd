// Package rdma implements the commands in the words of iproute2's rdma, with
// its JSON: link, dev, resource, statistic, system and monitor; and link's own
// additions (up, unit, gid). The commands speak no netlink: they ask
// netlinkmgr.
//
// A call flows so: args.go puts options and shortened words where cobra expects
// them, a command's file asks the manager and makes rows, filter.go drops rows,
// out.go prints them as text or JSON.
package rdma
