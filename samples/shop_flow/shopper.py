"""Customers of the shop of samples/webservice.py, as a class: see docs/coming-from-locust.md."""

from osbench.plugin import scenario


class Shopper(scenario.Scenario):
    """Logs in once, then looks three times as often as it buys."""

    def on_start(self) -> None:
        """Log in; the session keeps the cookie."""
        self.http.post("/login", name="login", json=dict(self.user.data))

    @scenario.configure(name="Shopper.visit")
    def visit(self) -> None:
        """Make an iteration."""
        self.one_of({self.look: 3, self.buy: 1})

    def look(self) -> None:
        """Look at the newest item."""
        item = self.http.get("/items", name="list").json()[0]["id"]
        self.http.get(f"/items/{item}", name="item", check={"$.id": item})

    def buy(self) -> None:
        """Order an item."""
        self.http.post("/orders", name="order", json={"item": 1}, expect=201)
