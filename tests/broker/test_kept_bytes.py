"""What clients can make the broker keep is bounded in bytes, not only in number."""

from semel.broker.partitions.fetch_sessions import LIVELY_MS, FetchSessions
from semel.core.groups.commands import ConsumerGroupHeartbeat, JoinGroup
from semel.core.groups.coordinator import GroupCoordinator
from semel.core.groups.settings import GroupSettings
from semel.wire.errors import ErrorCode as E
from semel.wire.messages.fetch import FetchRequest
from semel.wire.messages.join_group import JoinGroupRequest


def fetch(count, *, session_id=0, epoch=0, first=0, forgotten=()):
    partition, topic = FetchRequest.FetchPartition, FetchRequest.FetchTopic
    topics = [
        topic(topic=f"a-topic-with-a-name-{number}", partitions=[partition(partition=0)])
        for number in range(first, first + count)
    ]
    gone = [
        FetchRequest.ForgottenTopic(topic=f"a-topic-with-a-name-{number}", partitions=[0])
        for number in forgotten
    ]
    return FetchRequest(
        session_id=session_id, session_epoch=epoch, topics=topics, forgotten_topics_data=gone
    )


class TestFetchSessions:
    def test_many_large_ones_are_served_without_a_session_once_the_bytes_are_used_up(self):
        sessions = FetchSessions(1_000, 1 << 20)
        kept = [sessions.begin(fetch(500), 12, now_ms=0).session_id for _ in range(50)]
        assert 0 < len(sessions) < 10
        assert sessions.kept_bytes <= 1 << 20
        assert kept[0] != 0
        assert kept[-1] == 0

    def test_idle_ones_make_room(self):
        sessions = FetchSessions(1_000, 1 << 20)
        for number in range(50):
            found = sessions.begin(fetch(500), 12, now_ms=number * 2 * LIVELY_MS)
            assert found.session_id != 0
        assert sessions.kept_bytes <= 1 << 20

    def test_one_that_grows_beyond_them_is_dropped_and_its_client_begins_anew(self):
        sessions = FetchSessions(1_000, 1 << 16)
        id = sessions.begin(fetch(10), 12, now_ms=0).session_id
        request = fetch(500, session_id=id, epoch=1, first=10)
        assert sessions.begin(request, 12, now_ms=1) is E.FETCH_SESSION_ID_NOT_FOUND
        assert (len(sessions), sessions.kept_bytes) == (0, 0)

    def test_what_is_forgotten_is_given_back(self):
        sessions = FetchSessions(1_000, 1 << 20)
        id = sessions.begin(fetch(10), 12, now_ms=0).session_id
        before = sessions.kept_bytes
        sessions.begin(fetch(5, session_id=id, epoch=1, first=10), 12, now_ms=1)
        assert sessions.kept_bytes > before
        sessions.begin(fetch(0, session_id=id, epoch=2, forgotten=range(10, 15)), 12, now_ms=2)
        assert sessions.kept_bytes == before
        sessions.begin(fetch(0, session_id=id, epoch=3, forgotten=range(10)), 12, now_ms=3)
        assert (len(sessions), sessions.kept_bytes) == (0, 0)


class TestGroups:
    def machine(self, **settings):
        machine = GroupCoordinator(GroupSettings(initial_rebalance_delay_ms=0, **settings))
        return machine

    def decide(self, machine, command):
        decision = machine.decide(command, 1_000)
        for record in decision.records:
            machine.apply(record)
        return decision.reply

    def join(self, machine, number, size=100_000, group="g", **more):
        return self.decide(
            machine,
            JoinGroup(
                group,
                protocols=(("range", b"x" * size),),
                version=3,
                fresh_member_id=f"m{number}",
                request_id=number,
                **more,
            ),
        )

    def test_members_of_a_classic_group_say_so_much_together_and_no_more(self):
        machine = self.machine(max_bytes=1_000_000)
        replies = [self.join(machine, number) for number in range(1, 30)]
        refused = [r for r in replies if getattr(r, "error", None) is E.GROUP_MAX_SIZE_REACHED]
        assert 19 <= len(refused) <= 21
        assert machine.state.kept_bytes <= 1_000_000

    def test_a_member_that_says_no_more_than_before_is_never_refused(self):
        machine = self.machine(max_bytes=150_000)
        self.join(machine, 1)
        again = self.join(machine, 2, member_id="m1", room=0)
        assert getattr(again, "error", E.NONE) is not E.GROUP_MAX_SIZE_REACHED
        larger = self.join(machine, 3, size=149_000, member_id="m1", room=0)
        assert larger.error is E.GROUP_MAX_SIZE_REACHED

    def test_those_that_were_given_an_id_and_never_come_back_are_counted(self):
        machine = self.machine(max_bytes=1_000_000)
        for number in range(100):
            fresh = f"{number}-" + "x" * 30_000
            command = JoinGroup("g", protocols=(("range", b""),), fresh_member_id=fresh)
            reply = self.decide(machine, command)
        assert reply.error is E.GROUP_MAX_SIZE_REACHED
        assert machine.state.kept_bytes <= 1_000_000

    def test_members_of_a_consumer_group_say_so_much_together_and_no_more(self):
        machine = self.machine(max_bytes=1_000_000)
        names = tuple(f"topic-{number}" for number in range(1_000))
        errors = [
            self.decide(
                machine,
                ConsumerGroupHeartbeat(
                    "c",
                    f"m{number}",
                    0,
                    rebalance_timeout_ms=1_000,
                    subscribed_topic_names=names,
                    owned=(),
                ),
            ).error
            for number in range(20)
        ]
        assert errors[0] is E.NONE
        assert errors[-1] is E.GROUP_MAX_SIZE_REACHED
        assert machine.state.kept_bytes <= 1_000_000

    def test_what_members_said_is_forgotten_with_them(self):
        machine = self.machine()
        for number in range(1, 5):
            self.join(machine, number)
        assert machine.state.kept_bytes > 400_000
        group = machine.state.groups["g"].copy()
        for member in list(group.members):
            group.remove(member)
        assert group.kept_bytes == 0


async def test_all_groups_together_are_bounded_too(start_broker, connect):
    broker = await start_broker(groups_max_bytes=1 << 20)
    protocol = JoinGroupRequest.JoinGroupRequestProtocol
    refused = 0
    for number in range(20):
        request = JoinGroupRequest(
            group_id=f"g{number}",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[protocol(name="range", metadata=b"x" * 100_000)],
        )
        answer = await (await connect(broker))(request, 3)
        refused += answer.error_code == E.GROUP_MAX_SIZE_REACHED
    assert 9 <= refused <= 11
    assert broker.groups.room >= 0
