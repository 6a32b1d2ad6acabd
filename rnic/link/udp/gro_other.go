//go:build !linux

package udp

func startMerging() {}
func stopMerging()  {}
