// Package rdma is the commands in the words of iproute2's rdma, with its JSON:
// link, dev, resource, statistic, system and monitor; and what link can do
// beyond it (up, unit, gid). They ask netlinkmgr.
//
// A call flows so: args.go puts options and shortened words where cobra expects
// them, a command's file asks the manager and makes rows, filter.go drops rows,
// out.go prints them as text or JSON.
package rdma
