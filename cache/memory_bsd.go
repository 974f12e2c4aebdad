//go:build unix && !linux && !race

package cache

const mapFlags = 0

func advise([]byte) {}
