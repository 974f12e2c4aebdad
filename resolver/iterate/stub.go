package iterate

import (
	"bonsai/resolver/exchange"
	"bonsai/resolver/zonecut"
	"bonsai/wire"
	"context"
	"net/netip"
)

type Config struct {
	Exchange *exchange.Client
	Cuts     *zonecut.Map
	Now      func() uint32
	Limits   Limits
}
type Iterator struct{}

func New(Config) *Iterator { return nil }
func (it *Iterator) Resolve(ctx context.Context, t *Task, name wire.Name, qt wire.Type, avoid []netip.AddrPort) (*Result, error) {
	return nil, nil
}
