import pytest
from tests.security.test_routes import *
pytestmark = [pytest.mark.django_db]
def test_x(world):
    c = Client(raise_request_exception=False); c.force_login(world.owner)
    for p in admin_paths(world) + [world.at(x) for x in ALL if not x.startswith("/admin/")]:
        a = c.get(p)
        found = []
        try: check(a)
        except BaseException as e: found = Inline(a.content.decode()).found or repr(e)
        print(p, a.status_code, found)
