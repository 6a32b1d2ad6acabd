package uapi

// CheckDevice says whether Open understands a device name and its options
// (EINVAL with the reason if not), without opening anything: the device need
// not be there. An empty name is the default, as for Open.
func CheckDevice(device string) error {
	name, said := orDefault(device)
	_, err := parseDevice(name)
	return opError("CheckDevice", said, err)
}
