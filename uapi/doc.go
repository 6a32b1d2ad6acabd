// Package uapi is RDMA for Go programs: memory regions, queue pairs and
// completion queues as plain integer handles.
package uapi
