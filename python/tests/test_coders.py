import numpy as np
import pytest

import ncmesh
from ncmesh import gf

FIELDS = ("gf2", "gf16", "gf256")
DATA = bytes(range(200))


@pytest.mark.parametrize("field", FIELDS)
def test_what_is_encoded_and_recoded_is_decoded(field):
    encoder = ncmesh.Encoder(8, 32, field, seed=1)
    encoder.load(memoryview(DATA))
    relay = ncmesh.Recoder(8, 32, field, seed=2)
    while relay.rank < 8:
        relay.receive(encoder.encode())
    decoder = ncmesh.Decoder(8, 32, field)
    with pytest.raises(ValueError, match="0 of 8 independent packets"):
        decoder.data()
    news = 0
    while not decoder.is_complete:
        news += decoder.receive(np.frombuffer(relay.recode(), np.uint8))
        assert decoder.rank == news
    assert decoder.data() == DATA + bytes(8 * 32 - len(DATA))
    assert not decoder.receive(bytearray(encoder.encode()))


@pytest.mark.parametrize(("field", "packed"), [("gf2", 1), ("gf16", 2), ("gf256", 4)])
def test_a_packet_is_its_packed_coefficients_and_its_symbol(field, packed):
    encoder = ncmesh.Encoder(4, 3, field)
    encoder.load(b"abcdefghijkl")
    packet = encoder.encode(bytes([0, 0, 1, 0]))
    assert packet[packed:] == b"ghi"
    assert len(packet) == packed + 3


def test_a_payload_is_the_combination_of_the_symbols():
    encoder = ncmesh.Encoder(4, 50)
    encoder.load(DATA)
    coefficients = np.array([7, 0, 255, 1], np.uint8)
    payload = np.frombuffer(encoder.encode(coefficients)[4:], np.uint8)
    symbols = np.frombuffer(DATA, np.uint8).reshape(4, 50)
    assert (payload == gf.matmul(coefficients[None, :], symbols)[0]).all()


def test_one_seed_gives_one_series_of_packets():
    def packets(seed):
        encoder = ncmesh.Encoder(4, 4, seed=seed)
        encoder.load(b"0123456789abcdef")
        return [encoder.encode() for _ in range(4)]

    assert packets(1) == packets(1)
    assert packets(1) != packets(2)
    assert packets(None) != packets(None)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ncmesh.Encoder(0, 4), ValueError, "1 to 255 symbols, not 0"),
        (lambda: ncmesh.Encoder(4, 70_000), ValueError, "1 to 65535 bytes"),
        (lambda: ncmesh.Encoder(4, 4, "gf7"), ValueError, "there are gf2, gf16, gf256"),
        (lambda: ncmesh.Encoder(4, 4).load(bytes(17)), ValueError, "17 bytes of data in a gener"),
        (lambda: ncmesh.Encoder(4, 4).load("text"), TypeError, "bytes-like object"),
        (lambda: ncmesh.Encoder(4, 4).load(np.zeros(4)), TypeError, "bytes-like object"),
        (lambda: ncmesh.Encoder(4, 4).encode(b"123"), ValueError, "3 bytes where 4"),
        (lambda: ncmesh.Encoder(4, 4, "gf2").encode(b"\x00\x00\x02\x00"), ValueError, "2 at 2"),
        (lambda: ncmesh.Decoder(4, 4).receive(bytes(9)), ValueError, "8 bytes here, not 9"),
        (lambda: ncmesh.Decoder(4, 4, "gf2").receive(b"\xf1abcd"), ValueError, "padding"),
        (lambda: ncmesh.Recoder(4, 4).recode(), ValueError, "nothing to recode"),
    ],
)
def test_misuse_is_told(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- streams


def test_packets_of_a_stream_come_through_a_relay_that_lost_some():
    packets = [bytes([number] * (number + 1)) for number in range(6)]
    source, relay, sink = ncmesh.Window(seed=1), ncmesh.Window(seed=2), ncmesh.Window()
    for number, symbol in enumerate(packets):
        assert source.add(number, symbol)
        assert not source.add(number, symbol)

    # The relay has two packets as they were sent, and combinations.
    relay.add(0, packets[0])
    relay.add(4, packets[4])
    while relay.rank < 6:
        assert relay.receive(source.combine())
    assert [relay.packet(number) is not None for number in range(6)] == [True] * 6
    while sink.rank < 6:
        sink.receive(relay.combine())
    for number, symbol in enumerate(packets):
        # A shorter symbol counts as filled up with zeros.
        assert sink.packet(number).rstrip(b"\0") == symbol.rstrip(b"\0")


def test_a_combination_is_that_of_its_coefficients():
    window = ncmesh.Window()
    window.receive(ncmesh.Combination(7, b"\x01\x02\x00", b"ab"))
    assert window.packet(7) is None
    assert window.rank == 1
    window.add(8, b"xy")
    expected = gf.add(list(b"ab"), gf.multiply(2, list(b"xy")))
    assert window.packet(7) == bytes(expected.astype(np.uint8))

    # One that is left out of the range is in no combination.
    only = window.combine(8, 9)
    assert (only.first, only.coefficients, only.symbol) == (8, b"\x01", b"xy")
    assert window.combine(9) is None
    assert window.combine(9, 8) is None
    window.forget_before(8)
    assert (window.rank, window.packet(7)) == (1, None)


LAST = 2**32 - 2


def test_the_last_packets_of_a_stream_are_like_any_others():
    window = ncmesh.Window(seed=1)
    window.receive(ncmesh.Combination(LAST - 1, b"\x03\x01", b"ab"))
    window.add(LAST, b"xy")
    assert window.packet(LAST - 1) is not None
    assert window.combine().first == LAST - 1
    assert not window.receive(ncmesh.Combination(3, b"\0\0", b"ab"))


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda w: w.add(-1, b""), "packet -1: allowed is 0 to 4294967294"),
        (lambda w: w.add(LAST + 1, b""), "packet 4294967295"),
        (lambda w: w.packet(-5), "packet -5"),
        (lambda w: w.combine(0, LAST + 1), "packet 4294967295"),
        (lambda w: w.forget_before(-1), "packet -1"),
        (lambda _: ncmesh.Combination(0, b"", b"a"), "0 coefficients from packet 0"),
        (lambda _: ncmesh.Combination(0, bytes(65536), b"a"), "allowed are 1 to 65535"),
        (lambda _: ncmesh.Combination(LAST, b"ab", b"a"), "up to packet 4294967294"),
    ],
)
def test_misuse_of_a_window_is_a_value_error(misuse, message):
    with pytest.raises(ValueError, match=message):
        misuse(ncmesh.Window())
